package tenants

import "github.com/google/uuid"

// Platform is the tenant of what belongs to no merchant: couriers ride for
// several, so their duty and the positions of an idle one are the platform's.
var Platform = uuid.UUID{6: 0x70, 8: 0x80}
