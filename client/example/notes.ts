/** A note: a document of the app in a channel. Lists show the newest note first. */
export interface Note {
  readonly _id: string
  readonly text: string
  readonly at: string
}

export type NotesDb = PouchDB.Database

/** Changes the text of the current revision of a note. */
export async function changeNote(db: NotesDb, id: string, text: string): Promise<void> {
  await db.put({ ...(await db.get<Note>(id)), text })
}

export async function deleteNote(db: NotesDb, id: string): Promise<void> {
  await db.remove(await db.get(id))
}

/** Draws the notes of a channel now and after each change. Returns a function that stops it. */
export function followNotes(db: NotesDb, draw: (notes: readonly Note[]) => void): () => void {
  let isOver = false
  async function read(): Promise<void> {
    const { rows } = await db.allDocs<Note>({
      include_docs: true,
      startkey: 'note:\ufff0',
      endkey: 'note:',
      descending: true,
    })
    if (!isOver) draw(rows.flatMap(({ doc }) => (doc ? [{ _id: doc._id, text: doc.text, at: doc.at }] : [])))
  }
  const changes = db.changes({ since: 'now', live: true }).on('change', () => void read())
  void read()
  return () => {
    isOver = true
    changes.cancel()
  }
}
