import { defineHandlers, defineMachines, Reject, type Doc } from 'couchdb-sidecar'

export interface Order extends Doc {
  readonly email: string
  readonly items: readonly { readonly name: string; readonly cents: number }[]
  readonly total?: number
}

/** What may become of an order. CouchDB refuses everything else. */
const machines = defineMachines({
  order: {
    new: { mode: 'safe', create: 'client', next: { priced: 'sidecar' } },
    priced: { mode: 'unsafe', next: { confirmed: 'sidecar' } },
    confirmed: { next: { cancelled: 'client' } },
    cancelled: {},
    error: { next: { new: 'client' } },
  },
})

export default defineHandlers(machines, (control) => {
  // safe: may run twice, since it does nothing but work out the next document
  control.safe('order', 'new', async (order: Order) => {
    if (!(order.items?.length > 0)) throw new Reject('no_items', 'an order needs at least one item')
    const total = order.items.reduce((sum, { cents }) => sum + cents, 0)
    return { ...order, state: 'priced', total }
  })

  // unsafe: sends a mail, so this worker wins the document before it begins
  control.unsafe(
    'order',
    'priced',
    async (order: Order, ctx) => {
      const text = `Thank you. You pay ${(order.total ?? 0) / 100} euros.`
      await ctx.mail.send({ to: order.email, subject: 'Your order', text })
      return { ...order, state: 'confirmed' }
    },
    { timeout: '30s' },
  )
})
