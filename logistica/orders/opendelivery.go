package orders

// OpenDelivery is a state by the name it has in Open Delivery 1.3, the Brazilian
// standard for delivery systems; empty for no state.
//
// Theirs has no word for an order whose courier could not deliver and holds the
// goods yet: they are on their way back as soon as the courier turns round, so
// FAILED is RETURNING_TO_MERCHANT. DELIVERY_FINISHED, the courier's own return to
// duty, is nothing an order knows of.
func OpenDelivery(s State) string {
	switch s {
	case Created, Assigning:
		return "PENDING"
	case Assigned:
		return "ACCEPTED"
	case Unassignable:
		return "REJECTED"
	case PickupOngoing:
		return "PICKUP_ONGOING"
	case ArrivedAtMerchant:
		return "ARRIVED_AT_MERCHANT"
	case PickedUp:
		return "ORDER_PICKED"
	case DeliveryOngoing:
		return "DELIVERY_ONGOING"
	case ArrivedAtCustomer:
		return "ARRIVED_AT_CUSTOMER"
	case Delivered:
		return "ORDER_DELIVERED"
	case Failed, Returning:
		return "RETURNING_TO_MERCHANT"
	case Returned:
		return "RETURNED_TO_MERCHANT"
	case Cancelled:
		return "CANCELLED"
	}
	return ""
}
