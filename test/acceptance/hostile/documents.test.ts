/** CouchDB refuses each document that is no valid device or confirmation, and says why. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { hostileDocuments } from './documents.ts'
import { openStage, refusalOf, type Stage } from './stage.ts'

let stage: Stage
beforeAll(async () => (stage = await openStage()))
afterAll(() => stage.close())

test.each(hostileDocuments)('CouchDB refuses %s', async (_, doc, said) => {
  const refusal = await refusalOf(stage.control.member, doc)
  expect(refusal).toMatch(/^forbidden: /)
  expect(refusal).toMatch(said)
  expect(refusal!.length).toBeLessThan(1000)
})

test('a valid device still registers, and the database holds nothing else', async () => {
  const { _id } = await stage.registerGoodDevice()
  await eventually(async () => {
    const ids = (await stage.control.documents()).map((doc) => doc._id).filter((id) => !id.startsWith('_'))
    const kinds = ids.filter((id) => id !== _id).map((id) => id.split(':')[0])
    expect(kinds).toEqual(['account', 'confirm', 'database', 'guesses', 'mails'])
  })
})
