/** The handlers of examples/webhooks/, each in its language, called by a sidecar without other handlers. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../acceptance/build.ts'
import { startProcessWith, writeModule } from '../acceptance/own-handlers.ts'
import { eventually } from '../support/eventually.ts'
import { SECRET } from '../webhooks/receiver.ts'

const folder = join(root, 'examples/webhooks')

const languages = [
  { language: 'Python', command: 'python3', args: ['handlers.py', '0'], version: '--version' },
  { language: 'Go', command: 'go', args: ['run', 'handlers.go', '0'], version: 'version' },
] as const

/** Resolves with the port of the example. */
async function startExample(command: string, args: readonly string[]): Promise<string> {
  const env = { ...process.env, WEBHOOK_SECRET: SECRET, GO111MODULE: 'off', GOFLAGS: '' }
  const child = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void process.kill(-child.pid!)) // `go run` starts a child process
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return /^listening on (\d+)$/.exec(line)![1]!
}

test.each(languages)(
  'a handler in $language answers the webhook of the sidecar',
  async ({ command, args, version }) => {
    const isInstalled = spawnSync(command, [version]).status === 0
    if (!isInstalled) return expect(isInstalled, `${command} is not installed`).toBe(false)
    const host = `127.0.0.1:${await startExample(command, args)}`
    const json = (await readFile(join(folder, 'handlers.json'), 'utf8')).replace('127.0.0.1:8080', host)
    const settings = { SIDECAR_WEBHOOK_HOSTS: host, SIDECAR_WEBHOOK_SECRETS: SECRET }
    const { orders } = await startProcessWith(await writeModule(json, 'handlers.json'), settings)
    await orders.put({ _id: 'o', type: 'order', state: 'paid', total: 12, note: 'Ärger' })
    await orders.put({ _id: 'free', type: 'order', state: 'paid', total: 0 })
    await eventually(async () => expect(await orders.get('o')).toMatchObject({ state: 'invoiced', note: 'Ärger' }))
    expect((await orders.get('o')).invoice).toMatch(/^invoice-[\w-]{8}$/)
    await eventually(async () => expect(await orders.get('free')).toMatchObject({ state: 'error' }))
    expect((await orders.get('free')).error).toMatchObject({ code: 'nothing_to_pay' })
    const unsigned = await fetch(`http://${host}/order-paid`, { method: 'POST', body: '{"total":1}' })
    expect(unsigned.status).toBe(401)
  },
)
