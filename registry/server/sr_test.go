package server_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	textA = `{"type":"enum","name":"A","symbols":["X"]}`
	textU = `{"type":"record","name":"U","fields":[{"name":"a","type":"A"}]}`
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func code(err error) int {
	var answer *sr.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return 0
}

// Every call that franz-go's registry client has.
func TestFranzGoClientRegistersAndFinds(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	ctx := t.Context()
	made := must[sr.SubjectSchema](t)(r.sr.CreateSchema(ctx, "base", sr.Schema{Schema: textA}))
	if made.ID != 1 || made.Version != 1 || made.Subject != "base" {
		t.Errorf("created %+v", made)
	}
	refs := []sr.SchemaReference{{Name: "A", Subject: "base", Version: 1}}
	if id := must[int](t)(r.sr.RegisterSchema(sr.WithParams(ctx, sr.Normalize), "user", sr.Schema{Schema: textU, References: refs}, -1, -1)); id != 2 {
		t.Errorf("registered as %d", id)
	}
	if found := must[sr.SubjectSchema](t)(r.sr.LookupSchema(sr.WithParams(ctx, sr.Normalize), "base", sr.Schema{Schema: textA})); found.ID != 1 {
		t.Errorf("lookup: %+v", found)
	}
	if got := must[sr.Schema](t)(r.sr.SchemaByID(ctx, 2)); got.Schema != textU || !slices.Equal(got.References, refs) {
		t.Errorf("by id: %+v", got)
	}
	if got := must[string](t)(r.sr.SchemaTextByID(ctx, 1)); got != textA {
		t.Errorf("text by id: %s", got)
	}
	if got := must[string](t)(r.sr.SchemaTextByVersion(ctx, "base", -1)); got != textA {
		t.Errorf("text by version: %s", got)
	}
	if got := must[sr.SubjectSchema](t)(r.sr.SchemaByVersion(ctx, "user", -1)); got.ID != 2 || got.Version != 1 {
		t.Errorf("by version: %+v", got)
	}
	if got := must[[]sr.SubjectSchema](t)(r.sr.SchemaReferences(ctx, "base", 1)); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("references: %+v", got)
	}
	if got := must[[]sr.SubjectSchema](t)(r.sr.SchemaUsagesByID(ctx, 1)); len(got) != 1 || got[0].Subject != "base" {
		t.Errorf("usages: %+v", got)
	}
	if got := must[[]string](t)(r.sr.SubjectsByID(ctx, 1)); !slices.Equal(got, []string{"base"}) {
		t.Errorf("subjects by id: %v", got)
	}
	if got := must[[]sr.SubjectVersion](t)(r.sr.SchemaVersionsByID(ctx, 1)); len(got) != 1 || got[0].Version != 1 {
		t.Errorf("versions by id: %v", got)
	}
	if got := must[[]sr.SubjectSchema](t)(r.sr.AllSchemas(ctx)); len(got) != 2 {
		t.Errorf("all: %v", got)
	}
	if got := must[[]sr.SubjectSchema](t)(r.sr.Schemas(ctx, "user")); len(got) != 1 {
		t.Errorf("schemas: %v", got)
	}
	if got := must[[]string](t)(r.sr.Subjects(sr.WithParams(ctx, sr.SubjectPrefix("b")))); !slices.Equal(got, []string{"base"}) {
		t.Errorf("subjects: %v", got)
	}
	if got := must[[]int](t)(r.sr.SubjectVersions(ctx, "base")); !slices.Equal(got, []int{1}) {
		t.Errorf("versions: %v", got)
	}
}

func TestFranzGoClientFindsByGUID(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	ctx := t.Context()
	must[sr.SubjectSchema](t)(r.sr.CreateSchema(ctx, "base", sr.Schema{Schema: `"string"`}))
	const guid = "0b4e8e7d-2d5b-4b0e-8a84-2d4c1f1f6c3f"
	if _, err := r.sr.SchemaByGUID(ctx, guid); code(err) != 40403 {
		t.Errorf("unknown guid: %v", err)
	}
	// The MD5 of the text, as Confluent writes it.
	const known = "095d71cf-1255-6b9d-5e33-0ad575b3df5d"
	if got, err := r.sr.SchemaByGUID(ctx, known); err != nil || got.Schema.Schema != `"string"` || got.ID != 1 {
		t.Errorf("by guid: %+v, %v", got, err)
	}
	if got, err := r.sr.SchemaIDsByGUID(ctx, known); err != nil || len(got) != 1 || got[0].ID != 1 {
		t.Errorf("ids by guid: %+v, %v", got, err)
	}
}

func TestFranzGoClientSetsLevelsAndModes(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	ctx := t.Context()
	must[sr.SubjectSchema](t)(r.sr.CreateSchema(ctx, "one", sr.Schema{Schema: textA}))
	if got := r.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive, Normalize: true}, "one")[0]; got.Err != nil || got.Level != sr.CompatFullTransitive {
		t.Errorf("%+v", got)
	}
	if got := r.sr.Compatibility(ctx, "one")[0]; got.Err != nil || got.Level != sr.CompatFullTransitive || !got.Normalize {
		t.Errorf("level: %+v", got)
	}
	if got, err := r.sr.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "one", -2, sr.Schema{Schema: `"int"`}); err != nil || got.Is || len(got.Messages) == 0 {
		t.Errorf("check: %+v, %v", got, err)
	}
	if got, err := r.sr.CheckCompatibility(ctx, "one", 1, sr.Schema{Schema: textA}); err != nil || !got.Is {
		t.Errorf("check: %+v, %v", got, err)
	}
	if got := r.sr.ResetCompatibility(ctx, "one")[0]; got.Err != nil { // it looks for the level under Redpanda's name
		t.Errorf("reset: %+v", got)
	}
	if got := r.sr.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), "one")[0]; got.Err != nil || got.Level != sr.CompatBackward {
		t.Errorf("level: %+v", got)
	}
	if got := r.sr.SetMode(sr.WithParams(ctx, sr.Force), sr.ModeImport, "one")[0]; got.Err != nil || got.Mode != sr.ModeImport {
		t.Errorf("mode: %+v", got)
	}
	if got, err := r.sr.CreateSchemaWithIDAndVersion(ctx, "one", sr.Schema{Schema: `"long"`}, 70, 7); err != nil || got.ID != 70 || got.Version != 7 {
		t.Errorf("import: %+v, %v", got, err)
	}
	if got := r.sr.Mode(ctx, "one")[0]; got.Err != nil || got.Mode != sr.ModeImport {
		t.Errorf("mode: %+v", got)
	}
	if got := r.sr.ResetMode(ctx, "one")[0]; got.Err != nil || got.Mode != sr.ModeImport {
		t.Errorf("reset: %+v", got)
	}
	if got := r.sr.Mode(ctx, "")[0]; got.Err != nil || got.Mode != sr.ModeReadWrite {
		t.Errorf("mode: %+v", got)
	}
}

func TestFranzGoClientDeletes(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	ctx := t.Context()
	must[sr.SubjectSchema](t)(r.sr.CreateSchema(ctx, "one", sr.Schema{Schema: `"int"`}))
	must[sr.SubjectSchema](t)(r.sr.CreateSchema(ctx, "one", sr.Schema{Schema: `"long"`}))
	if err := r.sr.DeleteSchema(ctx, "one", 1, sr.HardDelete); code(err) != 40407 {
		t.Errorf("hard first: %v", err)
	}
	for _, how := range []sr.DeleteHow{sr.SoftDelete, sr.HardDelete} {
		if err := r.sr.DeleteSchema(ctx, "one", 1, how); err != nil {
			t.Error(err)
		}
		if got, err := r.sr.DeleteSubject(ctx, "one", how); err != nil || !slices.Equal(got, []int{2}) {
			t.Errorf("delete: %v, %v", got, err)
		}
	}
	if got := must[[]sr.SchemaType](t)(r.sr.SupportedTypes(ctx)); !slices.Equal(got, []sr.SchemaType{sr.TypeAvro, sr.TypeProtobuf, sr.TypeJSON}) {
		t.Errorf("types: %v", got)
	}
	if got := must[[]string](t)(r.sr.Contexts(ctx)); !slices.Equal(got, []string{"."}) {
		t.Errorf("contexts: %v", got)
	}
	if err := r.sr.DeleteContext(ctx, ".x"); code(err) != 42205 {
		t.Errorf("delete context: %v", err)
	}
	if _, err := r.sr.CreateSchema(ctx, ":.x:one", sr.Schema{Schema: textA}); code(err) != 42208 {
		t.Errorf("subject of a context: %v", err)
	}
	if got, err := r.sr.CreateSchema(ctx, "p", sr.Schema{Schema: "message M {}", Type: sr.TypeProtobuf}); err != nil || got.Type != sr.TypeProtobuf {
		t.Errorf("protobuf: %v %v", got, err)
	}
}

func TestFranzGoClientAuthenticates(t *testing.T) {
	r := guarded(t)
	for _, opt := range []sr.ClientOpt{sr.BasicAuth("ann", "secret"), sr.BearerToken("token")} {
		c := must[*sr.Client](t)(sr.NewClient(sr.URLs(r.url), sr.HTTPClient(r.http), opt))
		if _, err := c.Subjects(t.Context()); err != nil {
			t.Error(err)
		}
	}
	var answer *sr.ResponseError
	if _, err := r.sr.Subjects(t.Context()); !errors.As(err, &answer) || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without: %v", err)
	}
}
