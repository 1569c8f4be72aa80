package orders_test

import (
	"os"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/orders"
)

func TestTheDocumentHasTheTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/logistica.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range orders.States() {
		cells := []string{string(from)}
		for _, by := range []orders.Actor{orders.System, orders.Merchant, orders.Courier} {
			var to []string
			for _, s := range orders.Allowed(from, by) {
				to = append(to, string(s))
			}
			cells = append(cells, strings.Join(to, ", "))
		}
		cells = append(cells, orders.OpenDelivery(from))
		if row := "| " + strings.Join(cells, " | ") + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/logistica.md has no row\n%s", row)
		}
	}
}
