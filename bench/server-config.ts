import { ask } from './ask.ts'

/**
 * Sets a value of the server's configuration, as `ken/batch_channels`, on the node that is asked, until it restarts; empty:
 * as the server has it by itself. Resolves with the value before, which may be empty, too.
 */
export async function setConfig(url: string, key: string, value: string): Promise<string> {
  const answer = await ask(url, `_node/_local/_config/${key}`, {
    headers: { 'x-couch-persist': 'false' },
    ...(value === '' ? { method: 'DELETE' } : { method: 'PUT', body: JSON.stringify(value) }),
  })
  if (!answer.ok) throw new Error(`${key} was not set: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as string
}
