package protobuf

import (
	"embed"
	"strings"

	"github.com/bufbuild/protocompile"
	_ "google.golang.org/genproto/googleapis/type/calendarperiod" // these have google/type
	_ "google.golang.org/genproto/googleapis/type/color"
	_ "google.golang.org/genproto/googleapis/type/date"
	_ "google.golang.org/genproto/googleapis/type/datetime"
	_ "google.golang.org/genproto/googleapis/type/dayofweek"
	_ "google.golang.org/genproto/googleapis/type/decimal"
	_ "google.golang.org/genproto/googleapis/type/expr"
	_ "google.golang.org/genproto/googleapis/type/fraction"
	_ "google.golang.org/genproto/googleapis/type/interval"
	_ "google.golang.org/genproto/googleapis/type/latlng"
	_ "google.golang.org/genproto/googleapis/type/money"
	_ "google.golang.org/genproto/googleapis/type/month"
	_ "google.golang.org/genproto/googleapis/type/phone_number"
	_ "google.golang.org/genproto/googleapis/type/postaladdress"
	_ "google.golang.org/genproto/googleapis/type/quaternion"
	_ "google.golang.org/genproto/googleapis/type/timeofday"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// confluent is what Confluent's registry and clients have in common: tags and
// documentation as options, decimals, variants.
//
//go:embed confluent
var confluent embed.FS

// builtin finds what every registry has, so that no reference need name it.
// google/protobuf comes with the compiler.
func builtin(name string) (protocompile.SearchResult, bool) {
	var out protocompile.SearchResult
	switch {
	case strings.HasPrefix(name, "google/type/"):
		file, err := protoregistry.GlobalFiles.FindFileByPath(name)
		out.Desc = file
		return out, err == nil
	case strings.HasPrefix(name, "confluent/"):
		text, err := confluent.ReadFile(name)
		out.Source = strings.NewReader(string(text))
		return out, err == nil
	case strings.HasPrefix(name, "google/protobuf/"):
		out, err := protocompile.WithStandardImports(nothing{}).FindFileByPath(name)
		return out, err == nil
	}
	return out, false
}

// nothing is a resolver without files.
type nothing struct{}

func (nothing) FindFileByPath(string) (protocompile.SearchResult, error) {
	return protocompile.SearchResult{}, protoregistry.NotFound
}
