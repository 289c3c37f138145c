/** A user's handlers, in their own module and for their own database. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { createControl } from './control.ts'
import { startWith, writeModule } from './own-handlers.ts'
import type { Settings } from './sidecar.ts'
import { runCommand, startSidecar } from './start.ts'
import { settingsOf } from './registration.ts'

const stateOf = (database: Awaited<ReturnType<typeof freshDb>>, id: string, state: string) =>
  eventually(async () => {
    const doc = await database.get(id)
    expect(doc).toMatchObject({ state })
    return doc
  })

test('a handlers module may import only types', async () => {
  const module = await writeModule(
    `
    import type { HandlersModule } from 'couchdb-sidecar'
    const handlers: HandlersModule = {
      machines: {},
      register(control) {
        control.safe('photo', 'uploaded', async (photo) => ({ ...photo, state: 'listed' as const }))
      },
    }
    export default handlers
  `,
    'handlers.ts',
  )
  const { orders } = await startWith(module)
  await orders.put({ _id: 'p', type: 'photo', state: 'uploaded' })
  await stateOf(orders, 'p', 'listed')
})

const machines = `
  order: {
    paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } },
    invoiced: {},
    error: {},
  },`

test('handlers with their own machines can reject, fail, and find other documents', async () => {
  const module = await writeModule(
    `
    import { defineHandlers, Reject, CouchError, type Doc } from 'couchdb-sidecar'
    interface Order extends Doc { amount: number; customer: string }
    export default defineHandlers({${machines}}, (control) => {
      control.unsafe('order', 'paid', async (order: Order, ctx) => {
        if (!(order.amount > 0)) throw new Reject('no_amount', 'an order needs an amount')
        if (order.customer === 'nobody' && ctx.attempt === 1) throw new TypeError('once only')
        const customer = await ctx.find(order.customer)
        const seen = await ctx.put({ _id: 'c', name: 'Bob' }).catch((thrown) => thrown instanceof CouchError && thrown.code)
        return { ...order, state: 'invoiced', name: customer?.name, seen, attempt: ctx.attempt }
      })
    })
  `,
    'handlers.ts',
  )
  const { orders } = await startWith(module)
  await orders.put({ _id: 'c', name: 'Ann' })
  await orders.put({ _id: 'good', type: 'order', state: 'paid', amount: 1, customer: 'c' })
  await orders.put({ _id: 'bad', type: 'order', state: 'paid', amount: 0, customer: 'c' })
  await orders.put({ _id: 'shaky', type: 'order', state: 'paid', amount: 1, customer: 'nobody' })
  expect(await stateOf(orders, 'good', 'invoiced')).toMatchObject({ name: 'Ann', seen: 'conflict', attempt: 1 })
  expect(await stateOf(orders, 'shaky', 'invoiced')).toMatchObject({ attempt: 2 })
  const reason = 'an order needs an amount'
  expect((await stateOf(orders, 'bad', 'error')).error).toMatchObject({ code: 'no_amount', reason })
})

test('handlers can be JavaScript', async () => {
  const module = await writeModule(
    `
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.safe('photo', 'uploaded', (photo) => Promise.resolve({ ...photo, state: 'listed' }))
    })`,
    'handlers.mjs',
  )
  const { orders } = await startWith(module)
  await orders.put({ _id: 'p', type: 'photo', state: 'uploaded' })
  await stateOf(orders, 'p', 'listed')
})

thoroughTest('JavaScript may import TypeScript', async () => {
  const module = await writeModule(
    `
    import { defineHandlers } from 'couchdb-sidecar'
    import { listed } from './listed.ts'
    export default defineHandlers((control) => {
      control.safe('photo', 'uploaded', (photo) => Promise.resolve({ ...photo, state: listed }))
    })`,
    'handlers.mjs',
  )
  await writeFile(join(dirname(module), 'listed.ts'), "export const listed: string = 'listed'")
  const { orders } = await startWith(module)
  await orders.put({ _id: 'p', type: 'photo', state: 'uploaded' })
  await stateOf(orders, 'p', 'listed')
})

test('explain shows the machines of handlers and database, and deploy without handlers keeps the guard', async () => {
  const module = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers({${machines}}, (control) => {
      control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
    })`)
  const [control, orders] = [await createControl(), await freshDb('orders')]
  const settings = settingsOf(control, { SIDECAR_DATABASES: `${orders.name.slice(0, -2)}*` })
  const withHandlers = { ...settings, SIDECAR_HANDLERS: module }
  const said = async (args: string[], settings: Settings) => {
    const { code, stdout, stderr } = await runCommand(args, settings)
    expect(code, stderr).toBe(0) // stderr may contain the progress of a slow deploy
    return stdout
  }
  await orders.put({ _id: 'o', type: 'order', state: 'paid' })
  await said(['deploy'], withHandlers)
  const received = await said(['explain', orders.name, 'o'], withHandlers)
  expect(received).toContain(`A sidecar with these settings serves ${orders.name}.`)
  expect(received).toContain('The next state can be invoiced (by the sidecar).\nThe handler is unsafe')

  expect(await said(['status'], withHandlers)).toMatch(
    /^handlers\n {2}order\/paid {2}unsafe {2}timeout 5 min, 20 attempts, concurrency 32$/m,
  )
  expect(await said(['status'], { ...settings, SIDECAR_HANDLERS: 'gone.ts' })).toMatch(
    /^handlers\n {2}cannot be loaded: .*gone\.ts/m,
  )

  expect(await said(['deploy'], settings)).toContain('= machines.order stays: no handlers declare it here')
  const without = await said(['explain', orders.name, 'o'], { ...settings, SIDECAR_DATABASES: 'elsewhere' })
  expect(without).toContain(`No sidecar with these settings serves ${orders.name}`)
  expect(without).toContain('The database declares a handler (unsafe)')

  expect(await said(['deploy', '--remove-machines'], settings)).toContain('- machines.order')
  expect(await said(['explain', orders.name, 'o'], withHandlers)).toMatch(
    /The sidecar does not start this handler: .* run the deploy/,
  )
})

const broken = [
  ['exports no handlers', 'export const handlers = 1', 'expected a default export made by defineHandlers'],
  ['exports something else', 'export default {}', 'expected a default export made by defineHandlers'],
  ['exports null', 'export default null', 'expected a default export made by defineHandlers'],
  ['is not valid TypeScript', 'export default {', 'handlers.ts'],
  ['imports a missing package', `import 'nowhere'\nexport default {}`, 'run "npm install nowhere" in its folder'],
  ['throws', `throw new Error('no licence')`, 'no licence'],
  [
    'has a handler that its machine does not allow',
    `import { defineHandlers } from 'couchdb-sidecar'
     export default defineHandlers({${machines}}, (control: any) => control.safe('order', 'paid', async () => {}))`,
    'safe handler for order in state paid',
  ],
] as const

test('the faults of all modules and of all files in the settings are reported at once', async () => {
  const modules = await Promise.all(broken.map(([, source]) => writeModule(source, 'handlers.ts')))
  const { code, stderr } = await runCommand(['start'], {
    SIDECAR_HANDLERS: [...modules, '/nowhere/handlers.ts'].join(','),
    SIDECAR_MAIL_TEMPLATES: '/nowhere/mails',
    SIDECAR_CHANNEL_DDOCS: '/nowhere/ddocs',
    SMTP_URL: 'smtp://127.0.0.1:1',
  })
  expect(code).toBe(2)
  for (const [i, [name, , said]] of broken.entries()) {
    const faults = stderr
      .split('couchdb-sidecar: ')
      .filter((one) => one.startsWith(`SIDECAR_HANDLERS: ${modules[i]}: `))
    expect(faults.join(), `a module that ${name}`).toContain(said)
  }
  for (const name of ['SIDECAR_HANDLERS', 'SIDECAR_MAIL_TEMPLATES', 'SIDECAR_CHANNEL_DDOCS']) {
    expect(stderr).toMatch(new RegExp(`${name}: .*/nowhere/`))
  }
})

test('handlers whose machines differ from the database’s are reported and do not start; the others run', async () => {
  const first = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers({${machines}}, (control) => {
      control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
    })`)
  const { control, orders, settings, sidecar } = await startWith(first)
  for (const [{ name }, has] of [
    [control, false],
    [orders, true],
  ] as const) {
    const { machines } = await eventually(() => createTestCouch().db(name).get('_design/docstate'))
    expect(Object.hasOwn(machines as object, 'order'), name).toBe(has) // only where the handlers run
  }
  expect(await sidecar.stop()).toBe(0)

  const second = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.safe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
      control.safe('photo', 'uploaded', async (photo) => ({ ...photo, state: 'listed' }))
    })`)
  const { log } = await startSidecar({ ...settings, SIDECAR_HANDLERS: second })
  await orders.put({ _id: 'o', type: 'order', state: 'paid' })
  await orders.put({ _id: 'p', type: 'photo', state: 'uploaded' })
  await stateOf(orders, 'p', 'listed')
  expect((await orders.get('o'))._rev).toMatch(/^1-/)
  const errors = await eventually(() => {
    const errors = log.filter(({ level }) => level === 50)
    expect(errors.map(({ db }) => db)).toEqual([orders.name]) // the control database is not among SIDECAR_DATABASES
    return errors
  })
  for (const { msg } of errors) expect(msg).toContain('not started: safe handler for order in state paid')
})
