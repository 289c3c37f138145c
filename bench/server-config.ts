import { ask } from './ask.ts'

/**
 * Sets a value of the server's configuration, such as `ken/batch_channels`, on one node until it restarts. An empty
 * value restores the default. Resolves with the previous value, which may be empty, too.
 */
export async function setConfig(url: string, key: string, value: string): Promise<string> {
  const answer = await ask(url, `_node/_local/_config/${key}`, {
    headers: { 'x-couch-persist': 'false' },
    ...(value === '' ? { method: 'DELETE' } : { method: 'PUT', body: JSON.stringify(value) }),
  })
  if (!answer.ok) throw new Error(`${key} was not set: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as string
}
