// Plausible orders in São Paulo, to try the desk with. The people are invented;
// the streets are not.

const stores = [
  ["Rua dos Pinheiros", "748", "05422-001", "Pinheiros", -23.5663, -46.6845],
  ["Rua Augusta", "1508", "01304-001", "Consolação", -23.5563, -46.6582],
  ["Rua Domingos de Morais", "1492", "04010-200", "Vila Mariana", -23.5897, -46.6353],
  ["Rua Oscar Freire", "909", "01426-001", "Jardim Paulista", -23.5628, -46.6697],
];

const doors = [
  ["Avenida Paulista", "1578", "01310-200", "Bela Vista", -23.5615, -46.656],
  ["Rua Harmonia", "271", "05435-000", "Vila Madalena", -23.5546, -46.6908],
  ["Rua Frei Caneca", "569", "01307-001", "Consolação", -23.5541, -46.6519],
  ["Alameda Santos", "1165", "01419-001", "Jardim Paulista", -23.5651, -46.6544],
  ["Rua Vergueiro", "2253", "04101-100", "Vila Mariana", -23.5795, -46.6402],
  ["Rua Fradique Coutinho", "1139", "05416-011", "Vila Madalena", -23.5566, -46.6893],
  ["Rua Haddock Lobo", "1327", "01414-003", "Cerqueira César", -23.5617, -46.6661],
  ["Avenida Brigadeiro Faria Lima", "2232", "01451-001", "Jardim Paulistano", -23.5757, -46.6882],
];

const people = [
  "Ana Beatriz Moura", "Rafael Tanaka", "Camila Nogueira", "João Pedro Sales",
  "Larissa Yamamoto", "Thiago Antunes", "Marina Figueiredo", "Caio Berti",
];

const baskets = [
  [["Pão de queijo", 1, 1890], ["Café coado 300 ml", 2, 950]],
  [["Marmita de frango", 1, 3290], ["Suco de laranja 500 ml", 1, 1400]],
  [["Pizza meia a meia", 1, 7490], ["Guaraná 2 l", 1, 1490]],
  [["Temaki de salmão", 2, 3490], ["Missoshiru", 1, 1690]],
  [["Açaí 500 ml com granola", 2, 2690]],
  [["Coxinha de frango", 4, 990], ["Caldo de cana 400 ml", 2, 1290]],
  [["Feijoada para dois", 1, 9890], ["Couve refogada", 1, 1590], ["Laranja", 1, 690]],
  [["Hambúrguer artesanal", 2, 3890], ["Batata rústica", 1, 2290]],
];

// sample is the n-th of them; neighbours differ in every part.
export function sample(n) {
  const of = (list, step) => list[(n * step) % list.length];
  return {
    customer: { name: of(people, 3), phone: `(11) 9${1000 + ((n * 37) % 9000)}-${1000 + ((n * 73) % 9000)}` },
    pickup: place(of(stores, 1)),
    dropoff: place(of(doors, 5)),
    items: of(baskets, 1).map(([name, quantity, unit_price]) => ({ name, quantity, unit_price })),
    minutes: 45,
  };
}

function place([street, number, cep, district, lat, lng]) {
  return { street, number, cep, district, lat, lng };
}
