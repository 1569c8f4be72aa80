package doctor

import "context"

func lookAtRegistry(ctx context.Context, s Subject) []Finding {
	return check{"registry", func(ctx context.Context, s *Subject) ([]Finding, error) {
		subjects, err := s.Registry.Subjects(ctx, "")
		if err != nil {
			return fail(err.Error(), "a program that cannot register its schemas does not start, and events of a schema that is new wait",
				s.startIt()+", or name another in WAYBILL_REGISTRY_URL, its user or token in the configuration file"), nil
		}
		return ok("%s at %s", plural(int64(len(subjects)), "subject"), s.Registry.URL()), nil
	}}.run(ctx, &s)
}
