/**
 * The answers of the inbox as a database, for clients that replicate into it. They are always the same: the inbox has
 * no document, lacks every revision, accepts every checkpoint and keeps none. So each replication begins anew, and
 * repeats earlier documents.
 */
import { Hono } from 'hono'
import type { Hashing } from '../devices/passwords.ts'
import { HttpError } from '../http/http-errors.ts'
import { readObject } from '../http/json-body.ts'

const INFO = {
  db_name: 'inbox',
  doc_count: 0,
  doc_del_count: 0,
  update_seq: '0',
  purge_seq: '0',
  compact_running: false,
  instance_start_time: '0',
}

/** The path without and with a trailing slash: clients use either. */
export const rootOf = (path: string): string[] => [path, `${path}/`]

/**
 * @param path of the inbox
 * @param hashing hash parameters of the server, for a device's `credentials`
 */
export function inboxDatabase(path: string, { prf, iterations }: Hashing): Hono {
  const credentials = { password_scheme: 'pbkdf2', ...(prf !== 'sha' && { pbkdf2_prf: prf }), iterations }
  const app = new Hono()
  app.on('GET', rootOf(path), (c) => c.json({ ...INFO, credentials }))
  app.on('PUT', rootOf(path), () => {
    throw new HttpError(412, 'file_exists', 'The database could not be created, the file already exists.')
  })
  app.post(`${path}/_ensure_full_commit`, (c) =>
    c.json({ ok: true, instance_start_time: INFO.instance_start_time }, 201),
  )
  app.post(`${path}/_revs_diff`, async (c) => {
    const requested = Object.entries(await readObject(c))
    if (!requested.every(([, revs]) => isListOfTexts(revs))) {
      throw new HttpError(400, 'bad_request', 'Expected a list of revisions for each id.')
    }
    return c.json(Object.fromEntries(requested.map(([id, missing]) => [id, { missing }])))
  })
  app.get(`${path}/_local/:id`, () => {
    throw new HttpError(404, 'not_found', 'missing')
  })
  app.put(`${path}/_local/:id`, (c) => c.json({ ok: true, id: `_local/${c.req.param('id')}`, rev: '0-1' }, 201))
  return app
}

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
