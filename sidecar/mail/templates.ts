/**
 * The texts of the mails: built-in ones, each of which a file of the same name in the user's folder replaces. They
 * are checked once, at the start, because a template that fails must not fail for each device that registers.
 *
 * Values come from strangers. So each is brought to one line of bounded length before it goes into any text, and
 * HTML gets it escaped.
 */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import mustache from 'mustache'
import { ConfigError } from '../core/errors.ts'
import { checkTemplate } from './check-template.ts'
import { confirmTexts, type TemplateFile } from './confirm-texts.ts'

/** What a template may use: `{{name}}` and so on. */
export interface ConfirmValues {
  /** What the device calls itself. */
  readonly name: string
  /** The address of the confirm page. */
  readonly link: string
  /** In words: `24 hours`. */
  readonly expires_in: string
  /** The address that the mail goes to. */
  readonly owner: string
}

export interface Rendered {
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface Templates {
  confirm(values: ConfirmValues): Rendered
}

/** Room for a name, not for a message to somebody else's address. */
const MAX_NAME = 80
const MAX_ADDRESS = 254
const FILES = Object.keys(confirmTexts) as TemplateFile[]

/**
 * @param folder with any of `confirm.subject.txt`, `confirm.txt`, `confirm.html`
 * @throws ConfigError with a fault for each file that cannot be read or used
 */
export function loadTemplates(folder?: string): Templates {
  const texts: Record<TemplateFile, string> = { ...confirmTexts }
  const faults: string[] = []
  for (const { file, path } of filesIn(folder, faults)) {
    const own = readOwn(path, faults)
    if (own === undefined) continue
    texts[file] = own
    faults.push(...checkTemplate(file, own).map((fault) => `SIDECAR_MAIL_TEMPLATES: ${path}: ${fault}`))
  }
  if (faults.length > 0) throw new ConfigError(faults)

  return {
    confirm(values) {
      const view = {
        ...values,
        name: oneLine(values.name, MAX_NAME),
        owner: oneLine(values.owner, MAX_ADDRESS),
      }
      const plain = (file: TemplateFile) => mustache.render(texts[file], view, undefined, { escape: String })
      return {
        subject: oneLine(plain('confirm.subject.txt'), MAX_ADDRESS),
        text: plain('confirm.txt'),
        html: mustache.render(texts['confirm.html'], view),
      }
    },
  }
}

function filesIn(folder: string | undefined, faults: string[]): { file: TemplateFile; path: string }[] {
  if (folder === undefined) return []
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    faults.push(`SIDECAR_MAIL_TEMPLATES: expected a folder, got "${folder}"`)
  }
  return FILES.map((file) => ({ file, path: join(folder, file) }))
}

function readOwn(path: string, faults: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code !== 'ENOENT') faults.push(`SIDECAR_MAIL_TEMPLATES: ${path}: expected a readable file, got ${code}`)
    return undefined
  }
}

/**
 * Without control characters, line breaks and marks that turn the direction of reading; cut where it is too long. `=?`
 * is taken apart: a mail program would decode what it begins, and into whatever a stranger has encoded there.
 */
function oneLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').replace(/[\u202A-\u202E\u2066-\u2069\u200E\u200F]/g, '')
  const letters = [...line.trim().replaceAll('=?', '= ?')]
  return letters.length <= maxLength ? letters.join('') : `${letters.slice(0, maxLength).join('')}…`
}
