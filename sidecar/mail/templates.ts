/**
 * The texts of the mails. A file in the user's folder replaces the built-in text of the same name. The files are
 * checked once at startup, so that a broken template does not fail for each device that registers.
 *
 * Values come from strangers. So each value is shortened to one line of bounded length, and escaped in HTML.
 */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import mustache from 'mustache'
import { ConfigError } from '../core/errors.ts'
import { confirmTexts, inviteTexts } from './built-in-texts.ts'

/** Values that the templates of each kind may use: `{{name}}` and so on. */
interface MailValues {
  readonly confirm: {
    /** Name of the device, which the device has chosen. */
    readonly name: string
    /** URL of the confirm page. */
    readonly link: string
    /** Lifetime of the link in words: `24 hours`. */
    readonly expires_in: string
    /** The address that the mail goes to. */
    readonly owner: string
  }
  readonly invite: {
    /** The address of the user who invites. */
    readonly owner: string
    /** The address that the mail goes to. */
    readonly member: string
    /** The name of the channel. */
    readonly channel: string
  }
}

type MailKind = keyof MailValues

/** The kinds of mails: their built-in texts, the values that they may use, and the value that they must use. */
const kinds: {
  readonly [K in MailKind]: {
    readonly texts: Readonly<Record<string, string>>
    readonly values: readonly (keyof MailValues[K])[]
    /** Values that strangers write. No subject has them: readers see the subject first, and doubt it least. */
    readonly strangers: readonly (keyof MailValues[K])[]
    /** A value that the text must have: without it the mail is useless. */
    readonly needs?: keyof MailValues[K]
  }
} = {
  confirm: {
    texts: confirmTexts,
    values: ['name', 'link', 'expires_in', 'owner'],
    strangers: ['name', 'owner'],
    needs: 'link',
  },
  invite: { texts: inviteTexts, values: ['owner', 'member', 'channel'], strangers: ['owner', 'member', 'channel'] },
}

/** The files that a kind of mail is made from. */
const filesOf = (kind: MailKind) =>
  ({ subject: `${kind}.subject.txt`, text: `${kind}.txt`, html: `${kind}.html` }) as const

export interface Rendered {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** One function for each kind of mail. */
export type Templates = { readonly [K in MailKind]: (values: MailValues[K]) => Rendered }

/** Maximum length of a name, characters: not enough for a message to a stranger's address. */
const MAX_NAME = 80
const MAX_ADDRESS = 254
const ADDRESSES = ['owner', 'member']
/** The sidecar makes this value, so it is not shortened. */
const LINK = 'link'
const KINDS = Object.keys(kinds) as MailKind[]

/**
 * @param folder with any of `confirm.subject.txt`, `confirm.txt`, `confirm.html`, and the same of `invite`
 * @throws ConfigError with a fault for each file that cannot be read or used
 */
export function loadTemplates(folder?: string): Templates {
  const faults: string[] = []
  if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    faults.push(`SIDECAR_MAIL_TEMPLATES: expected a folder, got "${folder}"`)
  }
  const texts = Object.fromEntries(KINDS.map((kind) => [kind, textsOf(kind, folder, faults)]))
  if (faults.length > 0) throw new ConfigError(faults)

  const render = (kind: MailKind) => (values: Readonly<Record<string, string>>) =>
    renderMail(kind, texts[kind]!, Object.fromEntries(Object.entries(values).map(shortened)))
  return { confirm: (values) => render('confirm')({ ...values }), invite: (values) => render('invite')({ ...values }) }
}

function renderMail(kind: MailKind, texts: Readonly<Record<string, string>>, view: object): Rendered {
  const { subject, text, html } = filesOf(kind)
  const plain = (file: string) => mustache.render(texts[file]!, view, undefined, { escape: String })
  return {
    subject: oneLine(plain(subject), MAX_ADDRESS),
    text: plain(text),
    html: mustache.render(texts[html]!, view),
  }
}

const shortened = ([name, value]: [string, string]): [string, string] => [
  name,
  name === LINK ? value : oneLine(value, ADDRESSES.includes(name) ? MAX_ADDRESS : MAX_NAME),
]

/** The texts of a kind: files of the folder replace built-in texts. */
function textsOf(kind: MailKind, folder: string | undefined, faults: string[]): Record<string, string> {
  const texts = { ...kinds[kind].texts }
  if (folder === undefined) return texts
  for (const file of Object.keys(texts)) {
    const path = join(folder, file)
    const own = readOwn(path, faults)
    if (own === undefined) continue
    texts[file] = own
    faults.push(...checkTemplate(kind, file, own).map((fault) => `SIDECAR_MAIL_TEMPLATES: ${path}: ${fault}`))
  }
  return texts
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
 * Removes control characters, line breaks and marks that change the reading direction, and cuts a text that is too
 * long. Splits `=?`: a mail program would decode the text after it, which a stranger may have encoded.
 */
function oneLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').replace(/[\u202A-\u202E\u2066-\u2069\u200E\u200F]/g, '')
  const letters = [...line.trim().replaceAll('=?', '= ?')]
  return letters.length <= maxLength ? letters.join('') : `${letters.slice(0, maxLength).join('')}…`
}

/** Faults of a user's template, as "expected …, got …". */
function checkTemplate(kind: MailKind, file: string, text: string): string[] {
  const names: readonly string[] = kinds[kind].values
  const { needs } = kinds[kind]
  const strangers: readonly string[] = kinds[kind].strangers
  const { subject, html } = filesOf(kind)
  try {
    const tags = tagsOf(mustache.parse(text) as Token[])
    const unknown = tags.filter((tag) => tag.kind === '>' || !names.includes(tag.name))
    const faults = unknown.map(
      (tag) => `expected one of ${names.join(', ')}, got {{${tag.kind === '>' ? '> ' : ''}${tag.name}}}`,
    )
    if (needs !== undefined && file !== subject && !tags.some((tag) => tag.name === needs)) {
      faults.push(`expected {{${needs}}} in it, got a mail without the ${needs}`)
    }
    const written = tags.filter(({ name }) => file === subject && strangers.includes(name))
    faults.push(...written.map(({ name }) => `expected a subject without {{${name}}}, which strangers write`))
    if (file === html && tags.some((tag) => tag.kind === '&')) {
      faults.push('expected {{…}}, got {{{…}}} or {{&…}}, which would put what strangers wrote into HTML as it is')
    }
    return faults
  } catch (thrown) {
    return [`expected a Mustache template, got: ${(thrown as Error).message}`]
  }
}

/** Kinds of tokens whose second part is not the name of a value: text, comments, new delimiters. */
const NOT_A_NAME = ['text', '!', '=']

/** A token of `mustache.parse`: kind, name, start, end, and the tokens inside a section. */
type Token = [kind: string, name: string, start: number, end: number, inside?: Token[]]

const tagsOf = (tokens: Token[]): { kind: string; name: string }[] =>
  tokens.flatMap(([kind, name, , , inside]) => [
    ...(NOT_A_NAME.includes(kind) ? [] : [{ kind, name }]),
    ...(Array.isArray(inside) ? tagsOf(inside) : []),
  ])
