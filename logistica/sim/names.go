package sim

// dish is what a kitchen sells; its price is in centavos.
type dish struct {
	name  string
	price int64
}

type kitchen struct {
	kind string
	menu []dish
}

var kitchens = []kitchen{
	{"Padaria", []dish{{"Pão de queijo", 450}, {"Pão na chapa", 790}, {"Café coado", 600}, {"Bolo de fubá", 1100}}},
	{"Pizzaria", []dish{{"Pizza margherita", 5900}, {"Pizza calabresa", 6200}, {"Guaraná", 700}, {"Petit gâteau", 2400}}},
	{"Cantina", []dish{{"Nhoque ao sugo", 4200}, {"Lasanha", 4800}, {"Salada caprese", 3300}, {"Água com gás", 600}}},
	{"Temakeria", []dish{{"Temaki de salmão", 3600}, {"Combinado 16 peças", 6900}, {"Missoshiro", 1500}, {"Chá verde", 800}}},
	{"Lanchonete", []dish{{"X-salada", 2900}, {"Misto quente", 1600}, {"Batata frita", 2200}, {"Suco de laranja", 1200}}},
	{"Churrascaria", []dish{{"Picanha na brasa", 7800}, {"Farofa", 1200}, {"Vinagrete", 900}, {"Pudim", 1500}}},
	{"Açaí", []dish{{"Açaí 500 ml", 2300}, {"Tapioca de coco", 1700}, {"Vitamina", 1400}}},
	{"Mercearia", []dish{{"Cesta de frutas", 3900}, {"Queijo minas", 2800}, {"Vinho tinto", 6500}, {"Pão italiano", 1800}}},
	{"Restaurante", []dish{{"Feijoada", 5200}, {"Virado à paulista", 4400}, {"Moqueca", 6100}, {"Caipirinha", 2600}}},
	{"Floricultura", []dish{{"Buquê de rosas", 12900}, {"Orquídea", 9900}, {"Cartão", 500}}},
}

var saints = []string{
	"Aurora", "São Judas", "da Vila", "Bela Vista", "do Bixiga", "Santa Efigênia", "Ipê", "Jabuticabeira",
	"do Largo", "Trianon", "da Nonna", "Mooca", "Garoa", "Pinheirinho", "Flor da Serra", "Anhangabaú",
}

var firstNames = []string{
	"Ana", "Beatriz", "Bruno", "Caio", "Camila", "Diego", "Eduarda", "Felipe", "Gabriela", "Helena", "Igor",
	"Joana", "João", "Larissa", "Lucas", "Marina", "Mateus", "Nair", "Otávio", "Paula", "Rafael", "Rosa",
	"Sandra", "Tiago", "Vera", "Wesley", "Yara", "Zélia",
}

var lastNames = []string{
	"Almeida", "Andrade", "Barbosa", "Cardoso", "Castro", "Costa", "Dias", "Ferreira", "Freitas", "Gomes",
	"Lima", "Lopes", "Machado", "Martins", "Moraes", "Moura", "Nascimento", "Oliveira", "Pereira", "Ramos",
	"Ribeiro", "Rocha", "Santos", "Silva", "Souza", "Teixeira",
}

var references = []string{
	"Portaria azul", "Ao lado da banca", "Interfone 42", "Casa dos fundos", "Em frente à praça", "Bloco B",
}
