package jsonschema

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// items are what a schema says of the items of an array, as drafts up to
// 2019-09 and as 2020-12 write it.
type items struct {
	each  *node // nil where there is none, or it takes everything
	tuple []*jsonschema.Schema
	rest  rest
	left  *node // unevaluatedItems
}

func itemsOf(n *node) items {
	s := n.from
	out := items{tuple: s.PrefixItems, left: n.sub(s.UnevaluatedItems)}
	switch i := s.Items.(type) {
	case []*jsonschema.Schema:
		out.tuple, out.rest = i, restOf(n, s.AdditionalItems)
	case *jsonschema.Schema:
		out.each = n.sub(i)
	}
	if last := n.sub(s.Items2020); last != nil {
		switch {
		case last.shape == nothing:
			out.rest.closed = true
		case len(out.tuple) == 0:
			out.each = last
		case last.shape != anything:
			out.rest.schema = last
		}
	}
	if wide(out.each) {
		out.each = nil
	}
	return out
}

func (i items) open() bool {
	return !i.rest.closed && wide(i.rest.schema) && wide(i.left)
}

// covering is what an item past the tuple must be, nil if nothing says.
func (i items) covering() *node {
	if i.rest.schema != nil {
		return i.rest.schema
	}
	if i.rest.closed || wide(i.left) || i.left.shape == nothing {
		return nil
	}
	return i.left
}

func (d *differ) arrays(f *found, w, r *node) {
	before, after := itemsOf(w), itemsOf(r)
	f.join("/items", d.compare(before.each, after.each))
	d.tuples(f, w, r, before, after)
	d.rests(f, "/additionalItems", ItemsClosed, ItemsNarrowed, before.rest, after.rest)
	d.unevaluated(f, "/unevaluatedItems", UnevaluatedItemsClosed, UnevaluatedItemsNarrowed, before.left, after.left)
	f.most("maxItems", MaxItemsAdded, MaxItemsDecreased, w.from.MaxItems, r.from.MaxItems)
	f.least("minItems", MinItemsAdded, MinItemsIncreased, w.from.MinItems, r.from.MinItems)
	if r.from.UniqueItems && !w.from.UniqueItems {
		f.add(UniqueItemsAdded, "/uniqueItems")
	}
	f.most("maxContains", MaxContainsAdded, MaxContainsDecreased, w.from.MaxContains, r.from.MaxContains)
	f.least("minContains", MinContainsAdded, MinContainsIncreased, minContains(w.from), minContains(r.from))
}

// minContains is one where 2019-09 or later says contains and no more.
func minContains(s *jsonschema.Schema) *int {
	if s.DraftVersion < 2019 || s.Contains == nil || s.MinContains != nil {
		return s.MinContains
	}
	single := 1
	return &single
}

func (d *differ) tuples(f *found, w, r *node, before, after items) {
	both := min(len(before.tuple), len(after.tuple))
	at := func(i int) string { return "/items/" + strconv.Itoa(i) }
	for i := range both {
		f.join(at(i), d.compare(w.sub(before.tuple[i]), r.sub(after.tuple[i])))
	}
	for i, s := range before.tuple[both:] {
		d.itemRemoved(f, at(both+i), w.sub(s), after)
	}
	for i, s := range after.tuple[both:] {
		d.itemAdded(f, at(both+i), r.sub(s), before)
	}
}

func (d *differ) itemRemoved(f *found, path string, before *node, after items) {
	if after.open() {
		return
	}
	if c := after.covering(); c != nil {
		if more := d.compare(before, c); len(more) > 0 {
			f.join(path, more)
			f.add(ItemRemovedNotCovered, path)
		}
		return
	}
	if before.shape != nothing {
		f.add(ItemRemovedFromClosed, path)
	}
}

func (d *differ) itemAdded(f *found, path string, after *node, before items) {
	switch c := before.covering(); {
	case before.open():
		if after.shape != anything {
			f.add(ItemAddedToOpen, path)
		}
	case c != nil:
		if more := d.compare(c, after); len(more) > 0 {
			f.join(path, more)
			f.add(ItemAddedNotCovered, path)
		}
	}
}
