package orders

import "github.com/waybillhq/waybill/cdc"

// Changes is what change data capture may publish of this module's tables. Who
// the customer is and where to find them is not among it: no name, phone,
// street, postal code, coordinates or tracking token.
func Changes() []cdc.Table {
	return []cdc.Table{{
		Schema: "orders", Name: "orders", Topic: "orders.cdc", TenantColumn: "tenant",
		Columns: []string{
			"tenant", "id", "state", "version", "pickup_district", "dropoff_district",
			"total", "currency", "promised_at", "created_at", "updated_at",
		},
	}}
}
