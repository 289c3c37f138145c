/** Three sidecars under mishaps, like `chaos.process.test.ts`, while users create, change and close channels. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { differences } from './differences.ts'
import { KILL, mishaps, startWorld } from './mishaps.ts'
import { addPerson, answersTo, askInVain, useChannel, type ChannelRequest } from './people.ts'
import { CONTROL_DB, startWorker } from './trio.ts'

const MISHAPS = 28
const CHANNELS = ['photos', 'diary', 'plans']
const HEAL_MS = 180_000
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6))

test(
  `under mishaps to three sidecars, each channel has one database, and only its members have access (seed ${seed})`,
  { timeout: 1_800_000 },
  async () => {
    const world = await startWorld(seed)
    const { nodes, random } = world
    const server = nodes[0]!
    const smtp = await startTestSmtp()
    const couch = createTestCouch({ url: server.url })
    const settings = { SMTP_URL: smtp.url, SIDECAR_INVITES_PER_OWNER: '1000' }
    const workers = await Promise.all(['a', 'b', 'c'].map((name) => startWorker(name, server.url, settings)))
    onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.kill()))))
    await eventually(() => couch.db(CONTROL_DB).get('_design/docstate'))

    const people = await Promise.all(['ann', 'bob', 'carl', 'dora'].map((name) => addPerson(couch, name)))
    const addresses = [...people.map(({ address }) => address), 'stranger@example.com']
    const requests = people.flatMap((owner) =>
      CHANNELS.map((id): ChannelRequest => ({ owner, id, isOpen: false, members: [], data: undefined, ends: [] })),
    )
    const over = new AbortController()
    const using = requests.map((request) => {
      const friends = addresses.filter((address) => address !== request.owner.address)
      return useChannel({ request, others: friends, random, over: over.signal })
    })
    const others = Object.keys(mishaps).filter((name) => name !== KILL)
    const drawn = () => others.sort(() => random() - 0.5)
    const rest = [drawn(), drawn(), drawn(), drawn()].flat()
    const plan = Array.from({ length: MISHAPS }, (_, round) => (round % 3 === 0 ? KILL : rest.shift()!))
    for (const [round, name] of plan.entries()) {
      const requesting = Promise.all(people.map((person) => askInVain(person, round)))
      const victim = workers[Math.floor(random() * workers.length)]!
      await mishaps[name]!(victim, world)
      console.log(`${name} (${victim.name})`)
      await requesting
      await sleep(3000)
    }
    over.abort()
    await Promise.all(using)

    await eventually(async () => expect(await differences(couch, people, requests)).toEqual([]), { within: HEAL_MS })
    for (const round of plan.keys()) {
      const answers = await Promise.all(people.map((person) => answersTo(person, round)))
      expect(answers).toEqual(people.map(() => ['ready', 'name_taken', 'bad_channel']))
    }
    const ids = smtp.accepted.map(({ messageId }) => messageId)
    expect(new Set(ids).size, 'mails that were sent twice').toBe(ids.length)
    const lives = requests.map(({ isOpen, ends }) => ends.length + (isOpen ? 1 : 0))
    console.log(`${lives.reduce((sum, one) => sum + one)} lives of ${requests.length} channels, ${ids.length} mails`)
    for (const worker of workers) expect(await worker.stop(), 'the exit code of a stop').toBe(0)
  },
)
