/** Sample arguments of filters and `validate_doc_update` beside the document, in CouchDB's format. */

/** The user of a sample request. */
export interface SampleUser {
  /** Description for messages. */
  readonly who: string
  readonly userCtx: { readonly db: string; readonly name: string | null; readonly roles: readonly string[] }
}

const db = 'sample'

export const sampleUsers: readonly SampleUser[] = [
  { who: 'a member', userCtx: { db, name: 'member', roles: ['member'] } },
  { who: 'an anonymous user', userCtx: { db, name: null, roles: [] } },
  { who: 'a server admin', userCtx: { db, name: 'admin', roles: ['_admin'] } },
]

/** Has all four lists. CouchDB's default `_security` lacks both lists of names. */
export const sampleSecurity = {
  admins: { names: ['head'], roles: ['_admin'] },
  members: { names: ['member'], roles: ['member'] },
}

/** Data of the shard that is read, not of the database. */
const shardInfo = {
  db_name: 'shards/00000000-7fffffff/sample.1767225600',
  engine: 'couch_bt_engine',
  doc_count: 1,
  doc_del_count: 0,
  update_seq: 1,
  purge_seq: 0,
  compact_running: false,
  sizes: { active: 500, external: 100, file: 20000 },
  instance_start_time: '1767225600000000',
  disk_format_version: 8,
  committed_update_seq: 1,
  compacted_seq: 0,
  props: {},
  uuid: '0f1e2d3c4b5a69788796a5b4c3d2e1f0',
}

/** Requests for `_changes` with a filter, by GET and by POST. Custom parameters of a filter are unknown here. */
export const sampleRequests: readonly { readonly how: string; readonly req: Readonly<Record<string, unknown>> }[] =
  sampleUsers.flatMap(({ who, userCtx }) =>
    [
      { method: 'GET', body: 'undefined', headers: {} }, // CouchDB's value for no body
      { method: 'POST', body: {}, headers: { 'Content-Length': '2', 'Content-Type': 'application/json' } },
    ].map(({ method, body, headers }) => ({
      how: `requested by ${who} (${method})`,
      req: {
        info: shardInfo,
        uuid: '4f5e6d7c8b9aa0b1c2d3e4f506172839',
        id: null,
        method,
        requested_path: [db, '_changes?filter=sample', 'sample'],
        path: [db, '_changes'],
        raw_path: `/${db}/_changes?filter=sample/sample`,
        query: { filter: 'sample/sample' },
        headers: { Accept: '*/*', Host: '127.0.0.1:5984', 'User-Agent': 'sample', ...headers },
        body,
        peer: '127.0.0.1',
        form: {},
        cookie: {},
        userCtx,
        secObj: sampleSecurity,
      },
    })),
  )
