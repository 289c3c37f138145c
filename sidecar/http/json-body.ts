import type { Context } from 'hono'
import { HttpError } from './http-errors.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** Reads the JSON object of a request. Its fields are not checked. Throws `HttpError`. */
export async function readObject(c: Context): Promise<JsonObject> {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new HttpError(415, 'bad_content_type', 'Content-Type must be application/json')
  }
  const body = parse(await c.req.arrayBuffer())
  if (!isJsonObject(body)) throw new HttpError(400, 'bad_request', 'Request body must be a JSON object')
  return body
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parse(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new HttpError(400, 'bad_request', 'invalid UTF-8 JSON', { cause })
  }
}
