package doctor

import (
	"context"
	"fmt"
	"strings"
)

// failover looks whether the slot would be there on a replica that takes over.
func failover(ctx context.Context, s *Subject) ([]Finding, error) {
	if !s.fromWAL() {
		return ok("mode poll needs no slot on a replica"), nil
	}
	var replicas, unnamed []string
	var marked, exists bool
	err := s.db.QueryRow(ctx, `WITH physical AS (
			SELECT slot_name::text AS name FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary
			UNION
			SELECT coalesce(nullif(application_name, ''), 'a replica') FROM pg_stat_replication r
			WHERE state IN ('streaming', 'catchup')
				AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid)
		), named AS (
			SELECT trim(unnest(string_to_array(current_setting('synchronized_standby_slots', true), ','))) AS name
		)
		SELECT coalesce((SELECT array_agg(name) FROM physical), '{}'),
			coalesce((SELECT array_agg(slot_name::text) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary
				AND slot_name NOT IN (SELECT name FROM named WHERE name IS NOT NULL)), '{}'),
			EXISTS (SELECT FROM pg_replication_slots s WHERE slot_name = $1 AND to_jsonb(s)->>'failover' = 'true'),
			EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)`, s.Relay.Slot).
		Scan(&replicas, &unnamed, &marked, &exists)
	if err != nil {
		return nil, err
	}
	loses := "a replica that takes over has no slot: the relay makes a new one there and publishes what has no mark from the table, some of it perhaps twice"
	if s.messages() {
		loses = "a replica that takes over has no slot, and events that were in the WAL alone and not published by then are lost"
	}
	switch {
	case len(replicas) == 0:
		return ok("no replica is connected or has a slot here"), nil
	case s.major() < 17:
		return warn(fmt.Sprintf("replicas: %s; Postgres %d keeps no slots on them", strings.Join(replicas, ", "), s.major()), loses,
			"upgrade to Postgres 17, or install the extension pg_failover_slots"), nil
	case exists && !marked:
		return warn(fmt.Sprintf("replicas: %s; the slot is not one for failover", strings.Join(replicas, ", ")), loses, fmt.Sprintf(
			"stop the relay; psql \"dbname=%s replication=database\" -c \"ALTER_REPLICATION_SLOT %s (FAILOVER true)\"; on each replica: sync_replication_slots = on, hot_standby_feedback = on, primary_slot_name, and a dbname in primary_conninfo",
			s.db.Config().ConnConfig.Database, s.Relay.Slot)), nil
	case len(unnamed) > 0:
		return warn("synchronized_standby_slots does not name "+strings.Join(unnamed, ", "),
			"the relay may publish an event that the replica never got, which then is there and not in its database",
			fmt.Sprintf("ALTER SYSTEM SET synchronized_standby_slots = %s; SELECT pg_reload_conf()", literal(strings.Join(unnamed, ", ")))), nil
	}
	return ok("the slot is kept for failover; replicas: %s (their own sync_replication_slots cannot be seen from here)", strings.Join(replicas, ", ")), nil
}

func (s *Subject) major() int { return s.version / 10_000 }
