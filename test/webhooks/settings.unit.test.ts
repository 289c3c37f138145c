import type { Machines } from '../../ddocs/machine.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadHandlersFor } from '../../sidecar/cli/load-handlers.ts'
import { ConfigError } from '../../sidecar/core/errors.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import { joinHandlers } from '../../sidecar/docstate/handlers.ts'
import { checkWebhooks } from '../../sidecar/webhooks/bind-webhooks.ts'
import { keyFrom } from '../../sidecar/webhooks/sign.ts'
import { webhook } from '../../sidecar/webhooks/webhook.ts'

const key = keyFrom(`whsec_${'ab'.repeat(20)}`)!
const allowed = { webhookHosts: ['billing:8080', '*.example.com', '[::1]:80*'], webhookKeys: [key] }

async function load(json: unknown, settings = allowed) {
  const folder = await mkdtemp(join(tmpdir(), 'json-handlers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'handlers.json')
  await writeFile(path, typeof json === 'string' ? json : JSON.stringify(json))
  return { path, loaded: loadHandlersFor({ handlers: [path], ...settings }) }
}

async function faultsOf(json: unknown, settings = allowed): Promise<string[]> {
  const { path, loaded } = await load(json, settings)
  const thrown: unknown = await loaded.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(ConfigError)
  return (thrown as ConfigError).faults.map((fault) => fault.replace(`SIDECAR_HANDLERS: ${path}: `, ''))
}

test('handlers.json defines machines, webhooks, schedules and deletions', async () => {
  const paid = { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } }
  const { loaded } = await load({
    machines: { order: { paid, invoiced: {} }, photo: { shown: { create: 'client' } } },
    webhooks: [
      {
        ...{ type: 'order', state: 'paid', mode: 'unsafe', url: 'http://billing:8080/paid' },
        options: { key: 'customer', limit: { count: 10, per: '1m' } },
      },
    ],
    schedules: [
      { name: 'nightly', cron: '0 6 * * *', timeZone: 'Europe/Berlin', url: 'https://jobs.example.com/nightly' },
    ],
    deleted: [{ type: 'photo', url: 'http://[::1]:8081/gone' }],
  })
  const { registrations, schedules, deletions, machines } = await loaded
  expect(machines).toHaveProperty('order')
  const [order] = registrations
  expect(order).toMatchObject({ type: 'order', state: 'paid', mode: 'unsafe', options: { limit: { count: 10 } } })
  expect(order!.options.key?.({ _id: 'a', _rev: '1-a', customer: 'ann' })).toBe('ann')
  expect(schedules).toMatchObject([{ name: 'nightly', timeZone: 'Europe/Berlin' }])
  expect(deletions).toMatchObject([{ type: 'photo' }])
})

const one = { type: 'order', state: 'paid', mode: 'safe', url: 'http://billing:8080/paid' }

test.each([
  ['no JSON', '{', 'expected JSON: '],
  ['a list', [], 'expected an object with machines, webhooks, schedules and deleted'],
  ['an unknown field', { handlers: [] }, 'there is no handlers'],
  ['a typing error', { webhooks: [{ ...one, sate: 'paid' }] }, 'webhooks[0]: there is no sate'],
  ['no mode', { webhooks: [{ ...one, mode: 'quick' }] }, 'webhooks[0].mode: expected safe or unsafe'],
  ['no address', { webhooks: [{ ...one, url: 'billing' }] }, 'webhook: expected an address such as https://'],
  ['a file', { webhooks: [{ ...one, url: 'file:///etc/passwd' }] }, 'webhook: expected an address such as https://'],
  ['a wrong option', { webhooks: [{ ...one, options: { attempts: 0 } }] }, 'attempts: expected'],
  ['an invalid key', { webhooks: [{ ...one, options: { key: 5 } }] }, 'key: expected a function of the document'],
  ['a wrong cron', { schedules: [{ name: 'n', cron: 'daily', url: one.url }] }, 'the schedule n: cron: expected'],
  ['a machine without the state', { machines: { order: { new: {} } }, webhooks: [one] }, 'state paid'],
])('%s is a fault', async (_, json, fault) => {
  expect((await faultsOf(json)).join('\n')).toContain(fault)
})

test('a fault never shows the credentials in a URL', async () => {
  const faults = await faultsOf({ webhooks: [{ ...one, url: 'http://ann:s3cret@billing:8080/' }] })
  expect(faults.join()).toContain('without credentials, got http://***@billing:8080/')
})

test('all hosts and secrets that are missing in the settings are reported at once', () => {
  const control = createControl<Machines>({})
  control.safe('a', 'new', webhook('http://billing:8080/'))
  control.safe('b', 'new', webhook('http://billing/'))
  control.safe('c', 'new', webhook('https://evil-example.com/'))
  control.safe('d', 'new', webhook('https://shop.example.com:8443/'))
  control.safe('e', 'new', webhook('http://[::1]:8000/'))
  control.safe('a', 'new', webhook('http://billing:8080/'), { shadow: true })
  const handlers = joinHandlers([control])
  const faults = (settings: typeof allowed) => {
    try {
      checkWebhooks(handlers, settings)
    } catch (thrown) {
      return (thrown as ConfigError).faults
    }
    return []
  }
  const named = 'which a handler calls, got billing:8080, *.example.com, [::1]:80*'
  expect(faults({ ...allowed, webhookKeys: [] })).toEqual([
    ...['billing', 'evil-example.com', 'shop.example.com:8443'].map(
      (host) => `SIDECAR_WEBHOOK_HOSTS: expected to name ${host}, ${named}`,
    ),
    'SIDECAR_WEBHOOK_SECRETS: expected a secret to sign the calls, got none',
    'the shadow handler for a in state new: expected a function, got a webhook, whose effects cannot be withheld',
  ])
})

test.each(['', 'whsec_', 'whsec_c2hvcnQ=', 'ab'.repeat(20), `whsec_${'ä'.repeat(40)}`, `whsec_${'a'.repeat(100)}`])(
  'an invalid secret is a fault: %j',
  (secret) => expect(keyFrom(secret)).toBeUndefined(),
)
