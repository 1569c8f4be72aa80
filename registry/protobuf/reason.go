package protobuf

import "fmt"

// Reason is one obstacle between two versions.
type Reason struct {
	Version  int  // the earlier one
	Backward bool // the new schema cannot read the earlier version's data, not the reverse
	Difference
}

// String names the place, the version and the mend.
func (r Reason) String() string {
	whose := fmt.Sprintf("the new schema cannot read data of version %d", r.Version)
	if !r.Backward {
		whose = fmt.Sprintf("programs at version %d cannot read data of the new schema", r.Version)
	}
	return fmt.Sprintf("at %s, %s: %s; to mend, %s", r.where(), whose, r.obstacle(), r.mend())
}

func (r Reason) where() string {
	switch r.Kind {
	case PackageChanged:
		return "the package"
	case MessageRemoved:
		return fmt.Sprintf("message %q", r.Place)
	case MovedIntoOneof, ManyMovedIntoOneof:
		return fmt.Sprintf("oneof %q", r.Place)
	default:
		return fmt.Sprintf("field %q", r.Place)
	}
}

func (r Reason) obstacle() string {
	text := map[Kind]string{
		PackageChanged:     "every message has another name",
		MessageRemoved:     "the message is missing there",
		KindChanged:        "incompatible types",
		ScalarKindChanged:  "incompatible types",
		NamedTypeChanged:   "another message",
		LabelChanged:       "the label of a number changed",
		RequiredAdded:      "it is required there and never written",
		RequiredRemoved:    "it is required where data is written and unknown there",
		OneofMemberRemoved: "the member of a oneof is unknown there, so which one was set is lost",
		MovedIntoOneof:     "fields that were set together exclude each other there",
		ManyMovedIntoOneof: "fields that were set together exclude each other there",
		MadeRequired:       "it is required there and may be missing in the data",
		ValuesLost:         "it is a list where data is written and one number there, which gets none of a packed list",
	}[r.Kind]
	switch {
	case (r.Kind == MovedIntoOneof || r.Kind == ManyMovedIntoOneof) && r.Read != "":
		return fmt.Sprintf("%s (%s)", text, r.Read)
	case r.Written != "" && r.Read != "":
		return fmt.Sprintf("%s (written as %s, read as %s)", text, r.Written, r.Read)
	}
	return text
}

func (r Reason) mend() string {
	switch r.Kind {
	case PackageChanged:
		return "keep the package; register another one under a subject of its own"
	case MessageRemoved:
		if r.Backward {
			return "keep the message, even if nothing uses it, in its place in the file"
		}
		return fmt.Sprintf("leave the message out, which version %d does not have, or set a BACKWARD level", r.Version)
	case KindChanged, ScalarKindChanged:
		return "keep the type; add a field with a number of its own for the new one"
	case NamedTypeChanged:
		return "keep the message's name; add a field with a number of its own for another message"
	case LabelChanged, ValuesLost:
		return "keep the label; add a field with a number of its own for the other one"
	case RequiredAdded, MadeRequired:
		if r.Backward {
			return "make it optional"
		}
		return fmt.Sprintf("keep it required, which version %d has it", r.Version)
	case RequiredRemoved:
		if r.Backward {
			return "keep the field"
		}
		return "make the new field optional"
	case OneofMemberRemoved:
		if r.Backward {
			return "keep the member, or take the whole oneof away"
		}
		return "add the field outside of the oneof"
	case MovedIntoOneof, ManyMovedIntoOneof:
		if r.Backward {
			return "keep the fields where they are; new members of a oneof have numbers of their own"
		}
		return fmt.Sprintf("keep the oneof as version %d has it", r.Version)
	}
	return "keep this part as it was"
}
