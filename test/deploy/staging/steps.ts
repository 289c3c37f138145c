/** The request to CouchDB at each step of a deploy. */
import type { SeenRequest } from '../../support/faulty-proxy.ts'

export type Step = (request: SeenRequest, before: readonly SeenRequest[]) => boolean

export const isPut =
  (id: string): Step =>
  ({ method, path }) =>
    method === 'PUT' && decodeURIComponent(path).endsWith(`/_design/${id}`)
export const isDelete =
  (id: string): Step =>
  ({ method, path }) =>
    method === 'DELETE' && decodeURIComponent(path).endsWith(`/_design/${id}`)
export const notes =
  (step: string): Step =>
  ({ path, body }) =>
    path.endsWith('/_bulk_docs') && body.lastIndexOf(`"step":"${step}"`) > body.lastIndexOf('"step":') - 1
