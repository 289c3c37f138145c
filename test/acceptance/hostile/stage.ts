/** One running sidecar with its own mail catcher for all hostile tests of a file, and a valid device. */
import { expect } from 'vitest'
import type { Doc } from '../../../sidecar/couch/documents.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestSmtp } from '../../support/smtp.ts'
import { openControl, type Control } from '../control.ts'
import type { Sidecar } from '../sidecar.ts'
import { launchSidecar } from '../start.ts'
import { deployControl, linkIn, lookAway, newDevice, settingsOf, typeCode, untilState } from '../registration.ts'

export interface CaughtMail {
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
}

export interface Stage {
  readonly control: Control
  readonly sidecar: Sidecar
  /** The mails to an address. */
  mailsTo(address: string): Promise<CaughtMail[]>
  /** Registers a valid device. Rejects if any step fails. */
  registerGoodDevice(fields?: Record<string, unknown>): Promise<Doc>
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const control = await openControl()
  const smtp = process.env.TEST_IMAGE === undefined ? undefined : await openTestSmtp() // the image has no mail catcher
  const settings = settingsOf(control, smtp && { SMTP_URL: smtp.url })
  await deployControl(control, settings)
  await lookAway(control)
  const sidecar = await launchSidecar(settings).catch(async (thrown: unknown) => {
    await Promise.all([control.close(), smtp?.close()])
    throw thrown
  })

  async function mailsTo(address: string): Promise<CaughtMail[]> {
    if (smtp) {
      return smtp.accepted
        .filter(({ envelope }) => envelope.to.includes(address))
        .map(({ envelope: { to }, subject = '', text = '' }) => ({ to, subject, text }))
    }
    const mails = (await (await fetch(`${sidecar.url}/_mail/api/mails`)).json()) as CaughtMail[]
    return mails.filter(({ to }) => to.includes(address))
  }

  return {
    control,
    sidecar,
    mailsTo,
    async registerGoodDevice(fields) {
      const device = newDevice(fields)
      await control.member.put(device)
      await untilState({ control }, device._id, 'confirming')
      const [mail, ...more] = await mailsTo(device.owner)
      expect(more).toEqual([])
      expect(await typeCode(linkIn(mail?.text, sidecar.url))).toMatchObject({ status: 200, body: { ok: true } })
      return untilState({ control }, device._id, 'active')
    },
    async close() {
      await sidecar.end()
      await Promise.all([control.close(), smtp?.close()])
    },
  }
}

/** Writes one document, given as JSON or as a value; resolves with CouchDB's reason if it is refused. */
export async function refusalOf(database: Control['member'], doc: unknown): Promise<string | undefined> {
  const json = typeof doc === 'string' ? doc : JSON.stringify(doc)
  const [row] = await database.bulk([json])
  return row?.error === undefined ? undefined : `${row.error}: ${row.reason}`
}

/** Waits until the sidecar puts the document into error; resolves with the error. */
export const untilError = (control: Control, id: string) =>
  eventually(async () => {
    const { state, error } = await control.admin.get(id)
    expect({ state, error }).toMatchObject({ state: 'error', error: { code: expect.any(String) as string } })
    return error as { code: string; reason: string; at: string }
  })
