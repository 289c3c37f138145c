/** Notes are the app's own documents in a channel: the newest first. */
export interface Note {
  readonly _id: string
  readonly text: string
  readonly at: string
}

export type NotesDb = PouchDB.Database

/** Changes what is written in a note, as it is now. */
export async function changeNote(db: NotesDb, id: string, text: string): Promise<void> {
  await db.put({ ...(await db.get<Note>(id)), text })
}

export async function deleteNote(db: NotesDb, id: string): Promise<void> {
  await db.remove(await db.get(id))
}

/** Draws the notes of a channel now and whenever they change. Returns the end of it. */
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
