package sim

import "time"

// What goes over the wire, written anew as a stranger to the product would.

type address struct {
	Street    string  `json:"street"`
	Number    string  `json:"number"`
	CEP       string  `json:"cep"`
	District  string  `json:"district"`
	Lat       float64 `json:"lat"`
	Lng       float64 `json:"lng"`
	Reference string  `json:"reference,omitempty"`
}

type customer struct {
	Name  string `json:"name"`
	Phone string `json:"phone"`
}

type item struct {
	Name      string `json:"name"`
	Quantity  int32  `json:"quantity"`
	UnitPrice int64  `json:"unit_price"`
}

type newOrder struct {
	Pickup     address    `json:"pickup"`
	Dropoff    address    `json:"dropoff"`
	Customer   customer   `json:"customer"`
	Items      []item     `json:"items"`
	PromisedAt *time.Time `json:"promised_at,omitempty"`
}

// madeOrder is an order as its merchant gets it back.
type madeOrder struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	TrackingToken string `json:"tracking_token"`
}

// tracked is an order as its customer sees it.
type tracked struct {
	State        string `json:"state"`
	DeliveryCode string `json:"delivery_code"`
}

type move struct {
	To     string `json:"to"`
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type duty struct {
	State string `json:"state"`
}

// job is an order as its courier sees it.
type job struct {
	ID      string  `json:"id"`
	OrderID string  `json:"order_id"`
	State   string  `json:"state"`
	Pickup  address `json:"pickup"`
	Dropoff address `json:"dropoff"`
}

func (j *job) order() string {
	if j.OrderID != "" {
		return j.OrderID
	}
	return j.ID
}

type jobs struct {
	Jobs []job `json:"jobs"`
}

type fix struct {
	Seq        int64     `json:"seq"`
	Lat        float64   `json:"lat"`
	Lng        float64   `json:"lng"`
	SpeedMps   float64   `json:"speed_mps"`
	HeadingDeg float64   `json:"heading_deg"`
	AccuracyM  float64   `json:"accuracy_m"`
	FixTime    time.Time `json:"fix_time"`
}

type positions struct {
	Positions []fix `json:"positions"`
}
