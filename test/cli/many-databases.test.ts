/** Commands over many databases at once. */
import { expect, onTestFinished, test } from 'vitest'
import { createControl } from '../acceptance/control.ts'
import { runInProcess } from '../acceptance/in-process.ts'
import { settingsOf } from '../acceptance/registration.ts'
import { createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'

test('status over many databases causes no warning of Node', async () => {
  const [control, prefix] = [await createControl(), uniqueName('many')]
  const couch = createTestCouch()
  const names = Array.from({ length: 40 }, (_, n) => `${prefix}-${n}`)
  onTestFinished(async () => void (await Promise.all(names.map(deleteDb))))
  await Promise.all(names.map((name) => couch.db(name).create()))
  const settings = settingsOf(control, { SIDECAR_DATABASES: `${prefix}-*` })
  const warnings: string[] = []
  const receive = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`)
  process.on('warning', receive)
  onTestFinished(() => void process.off('warning', receive))
  for (const args of [['deploy'], ['status'], ['status', '--stuck'], ['list']])
    expect(await runInProcess(args, settings)).toMatchObject({ code: 0 })
  await new Promise((resolve) => setTimeout(resolve, 50)) // Node emits warnings asynchronously
  expect(warnings).toEqual([])
})
