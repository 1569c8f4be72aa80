package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/registry"
)

// bodies reads events for endpoints as streams and the API tell them: by the
// types of the contracts, with times in RFC 3339. Printed as the schema has them
// they would be numbers, in a unit that no receiver can see. What this program
// has no type for is printed so all the same.
type bodies struct {
	*registry.Decoder
	names sync.Map // schema id -> name of the record
}

// DecodeAny is that of a registry.Decoder, for which it stands in.
func (b *bodies) DecodeAny(ctx context.Context, value []byte) (registry.Info, []byte, error) {
	id, _, err := registry.SplitHeader(value)
	if err != nil {
		return registry.Info{}, nil, err
	}
	name, known := b.names.Load(id)
	if !known {
		info, text, err := b.Decoder.DecodeAny(ctx, value)
		if err != nil {
			return info, nil, err
		}
		b.names.Store(id, info.Name)
		if _, ours := contracts.New(info.Name); !ours {
			return info, text, nil
		}
		name = info.Name
	}
	info := registry.Info{ID: id, Name: name.(string)} //nolint:forcetypeassert // stored above
	data, ours := contracts.New(info.Name)
	if !ours {
		return b.Decoder.DecodeAny(ctx, value)
	}
	if err := b.Decode(ctx, value, data, data.EventContract().Schema); err != nil {
		return info, nil, fmt.Errorf("read %s: %w", info.Name, err)
	}
	text, err := json.Marshal(data)
	return info, text, err
}
