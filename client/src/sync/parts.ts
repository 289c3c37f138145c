/**
 * Divides requests. A server refuses a whole request for one document in it: 413 if that is too large for CouchDB or a
 * proxy, 400 if it holds half a character. The request is then sent in halves, until that document is alone. A refused
 * single document is answered as forbidden: PouchDB reports it, passes it, and tries its next revision.
 */
type Send = (body: string) => Promise<Response>

/** A request of many documents, and how to join the answers to its parts. */
interface Divisible<Body, Part, Answer> {
  partsOf(body: Body): readonly Part[]
  bodyOf(body: Body, parts: readonly Part[]): Body
  /** The answer for a refused part. */
  refused(part: Part, reason: string): Answer
  join(answers: readonly Answer[]): Answer
}

interface Docs {
  readonly docs: readonly { readonly _id: string; readonly _rev: string }[]
}

const bulkDocs: Divisible<Docs, Docs['docs'][number], readonly object[]> = {
  partsOf: ({ docs }) => docs,
  bodyOf: (body, docs) => ({ ...body, docs }),
  refused: ({ _id: id, _rev: rev }, reason) => [{ id, rev, error: 'forbidden', reason }],
  join: (rows) => rows.flat(),
}

type Revisions = Readonly<Record<string, unknown>>

const revsDiff: Divisible<Revisions, readonly [string, unknown], Revisions> = {
  partsOf: (revisions) => Object.entries(revisions),
  bodyOf: (_body, parts) => Object.fromEntries(parts),
  refused: ([id, missing]) => ({ [id]: { missing } }), // then PouchDB sends the document, and the server refuses it
  join: (answers) => Object.fromEntries(answers.flatMap((answer) => Object.entries(answer))),
}

/** @param send sends a body to this address */
export async function sendInParts(address: string, body: string, send: Send): Promise<Response> {
  if (address.endsWith('/_bulk_docs')) return whole(bulkDocs, body, send)
  if (address.endsWith('/_revs_diff')) return whole(revsDiff, body, send)
  return send(body)
}

async function whole<Body, Part, Answer>(
  kind: Divisible<Body, Part, Answer>,
  text: string,
  send: Send,
): Promise<Response> {
  const answer = await send(text)
  const reason = await refusalIn(answer)
  if (reason === undefined) return answer
  const body = JSON.parse(text) as Body
  const parts = kind.partsOf(body)
  const bodyOf = (some: readonly Part[]) => JSON.stringify(kind.bodyOf(body, some))
  const [part] = parts
  if (part !== undefined && parts.length === 1) {
    // A server that also refuses an empty request does not refuse the document.
    const empty = await send(bodyOf([]))
    return empty.ok ? Response.json(kind.refused(part, reason)) : answer
  }
  const middle = Math.ceil(parts.length / 2)
  const answers: Answer[] = []
  for (const some of [parts.slice(0, middle), parts.slice(middle)]) {
    if (some.length === 0) return answer
    const answered = await whole(kind, bodyOf(some), send)
    if (!answered.ok) return answered
    answers.push((await answered.json()) as Answer)
  }
  return Response.json(kind.join(answers))
}

/** Why the server refuses the content of a request; undefined if it does not. A page with 400 may mean anything. */
async function refusalIn(answer: Response): Promise<string | undefined> {
  if (answer.status !== 400 && answer.status !== 413) return undefined
  const said = (await answer
    .clone()
    .json()
    .catch(() => ({}))) as { readonly error?: string; readonly reason?: string }
  if (said.error !== undefined) return `${answer.status} ${said.error}: ${said.reason ?? ''}`
  return answer.status === 413 ? '413 too large' : undefined
}
