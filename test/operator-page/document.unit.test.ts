import { html } from 'hono/html'
import { expect, test } from 'vitest'
import { DocumentPage } from '../../sidecar/operator-page/document-page.tsx'

const doc = {
  ...{ _id: 'o1', _rev: '2-a', type: 'order', state: 'paid', email: 'ann@example.com' },
  docstate: { state: 'paid', attempts: 1, steps: { charge: { card: '4711' } } },
}

async function textOf(isShown: boolean): Promise<string> {
  const viewer = { name: 'ann', mayAct: true }
  const explained = { sentences: [], history: [] }
  return String(
    await html`${DocumentPage({ viewer, database: 'shop', doc, conflicts: [], failures: [], explained, isShown })}`,
  )
}

test('a document page hides personal data, also in the results of steps, and shows the rest', async () => {
  const text = await textOf(false)
  for (const personal of ['ann@example.com', '4711']) expect(text).not.toContain(personal)
  for (const open of ['email', 'charge', 'attempts', '2-a']) expect(text).toContain(open)
})

test('a document page shows all fields after the request to reveal them', async () => {
  const text = await textOf(true)
  for (const personal of ['ann@example.com', '4711']) expect(text).toContain(personal)
})
