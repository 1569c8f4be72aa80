package wal

import "time"

// Handler receives what a slot's transactions did, in commit order: Begin,
// the rows, Commit. Slices it is given are valid until it returns.
//
// One that also is an [UpdateHandler], [DeleteHandler], [TruncateHandler] or
// [MessageHandler] is told of those too; others pass them over.
type Handler interface {
	Begin(t Begin) error
	Insert(rel *Relation, row []Value) error
	Commit(end LSN) error
}

// UpdateHandler is told of updated rows.
type UpdateHandler interface {
	Update(rel *Relation, old Old, row []Value) error
}

// DeleteHandler is told of deleted rows.
type DeleteHandler interface {
	Delete(rel *Relation, old Old) error
}

// TruncateHandler is told of truncated tables: those of one statement at once,
// and only those the publication has.
type TruncateHandler interface {
	Truncate(rels []*Relation) error
}

// MessageHandler is told of logical messages (pg_logical_emit_message). They
// come only if [Config.Messages] asks for them, and then everybody's: any role
// may emit one, so look at the prefix, and do not believe the content.
//
// A transactional one comes between Begin and Commit. Any other comes at its
// place in the WAL, whether or not its transaction ever commits, and may come
// outside of a transaction.
type MessageHandler interface {
	Message(m Message) error
}

// Begin opens a transaction.
type Begin struct {
	XID        uint32
	CommitLSN  LSN       // of the commit's record; [Handler].Commit is given its end, which is what may be confirmed
	CommitTime time.Time // when it committed, by the server's clock
}

// Message is a logical message. Its slices point into the read buffer.
type Message struct {
	Transactional bool
	LSN           LSN // where it stands in the WAL
	Prefix        []byte
	Content       []byte
}

// Relation is a table as it stands at this point of the stream. A new one with
// the same ID replaces it after a change of the table: to notice, compare
// pointers.
type Relation struct {
	ID        uint32 // OID
	Namespace string
	Name      string
	Identity  Identity
	Columns   []Column
}

// Identity is what a table has the WAL keep of a row that is updated or
// deleted (REPLICA IDENTITY).
type Identity byte

// Replica identities.
const (
	IdentityDefault Identity = 'd' // the primary key
	IdentityNothing Identity = 'n'
	IdentityFull    Identity = 'f' // the whole row
	IdentityIndex   Identity = 'i' // the columns of an index
)

// Column is a column of a relation.
type Column struct {
	Name     string
	Type     uint32 // OID
	Modifier int32  // such as a numeric's precision, -1 if there is none
	Key      bool   // part of the replica identity
}

// Old is a row before its change, as far as the server sent it.
type Old struct {
	Kind OldKind
	// Row has all columns of the relation. Those outside of the key are Null
	// in an OldKey, whatever they were.
	Row []Value
}

// OldKind is how much of the old row there is.
type OldKind byte

// Kinds of [Old].
const (
	OldNone OldKind = 0   // an update that left the replica identity as it was
	OldKey  OldKind = 'K' // the replica identity's columns alone
	OldRow  OldKind = 'O' // the whole row: the replica identity is full
)

// Kinds of a [Value].
const (
	Null      = 'n'
	Unchanged = 'u' // a TOASTed value the update did not touch; not sent
	Text      = 't'
	Binary    = 'b'
)

// Value is one column of a row. Data points into the read buffer.
type Value struct {
	Kind byte
	Data []byte
}
