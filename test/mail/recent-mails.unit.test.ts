/** Recent attempts to send a mail, for the operator's page. */
import { expect, test } from 'vitest'
import { maskedAddress, RecentMails, recentMailsFrom } from '../../sidecar/mail/recent-mails.ts'
import { createManualClock } from '../support/manual-clock.ts'

const document = { database: 'shop', id: 'o1' }

test('the last twenty are kept, the newest first, with masked recipients and short reasons', () => {
  const clock = createManualClock()
  const mails = new RecentMails(clock)
  for (let n = 0; n < 30; n++) mails.add({ ...document, id: `o${n}`, to: 'ann@example.com' })
  mails.add({ ...document, to: 'bob@example.com', failure: { code: 'mail_refused', reason: 'x'.repeat(1000) } })
  expect(mails.all).toHaveLength(20)
  const [last, before] = mails.all
  expect(last).toMatchObject({ ...document, to: 'b…@example.com', failure: { code: 'mail_refused' } })
  expect(last!.failure!.reason).toHaveLength(200)
  expect(before).toEqual({ ...document, id: 'o29', at: '2030-01-01T00:00:00.000Z', to: 'a…@example.com' })
  expect(recentMailsFrom(JSON.parse(JSON.stringify(mails.all)))).toEqual(mails.all)
})

test.each([
  ['ann@example.com', 'a…@example.com'],
  ['😀@example.com', '😀…@example.com'],
  ['no address', '…'],
  ['@example.com', '@…@example.com'],
  [5, '…'],
  [undefined, '…'],
])('the recipient %j is shown as %s', (address, shown) => expect(maskedAddress(address)).toBe(shown))

test.each([null, 'text', {}, [{}], [{ at: 'now' }]])('another worker’s value %j adds nothing', (value) =>
  expect(recentMailsFrom(value)).toEqual([]),
)
