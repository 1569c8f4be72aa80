package consume

import "testing"

func TestTheLedgerTellsCopiesAndWrongTurns(t *testing.T) {
	l := newLedger()
	for _, n := range []int64{1, 2, 2, 5, 3, 6} {
		l.saw("a", n)
	}
	l.saw("b", 1)
	if l.distinct != 5 || l.duplicates != 2 || l.reordered != 1 {
		t.Errorf("distinct %d, duplicates %d, reordered %d", l.distinct, l.duplicates, l.reordered)
	}
}
