import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../../sidecar/core/errors.ts'
import { loadTemplates } from '../../sidecar/mail/templates.ts'

const values = {
  name: 'phone',
  link: 'http://localhost:5985/confirm/d1/c0de',
  expires_in: '24 hours',
  owner: 'owner@example.com',
}

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'templates-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const own = (name: string, text: string) => writeFileSync(join(folder, name), text)

function faultsOf(): readonly string[] {
  try {
    loadTemplates(folder)
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults
    throw thrown
  }
  return []
}

describe('the built-in confirmation mail', () => {
  const templates = loadTemplates()
  const confirm = (given: typeof values) => templates.confirm(given)

  it('says which device asks, for whom, where to confirm, how long, and what to do if it was not you', () => {
    const { subject, text, html } = confirm(values)
    expect(subject).toBe('Confirm your device')
    for (const part of ['phone', 'owner@example.com', '24 hours', 'If it was not you']) {
      expect(text).toContain(part)
      expect(html).toContain(part)
    }
    expect(text).toContain(`\n${values.link}\n`)
    expect(html.replaceAll('&#x2F;', '/')).toContain(`href="${values.link}"`)
  })

  it('says what confirming gives away, and that no code counts but the one on the device in hand', () => {
    const { text, html } = confirm(values)
    for (const part of ['read and change all that your devices share', 'no code that another person has told'])
      for (const body of [text, html]) expect(body.replace(/\s+/g, ' ')).toContain(part)
  })

  it('keeps text as it is and escapes HTML', () => {
    const { text, html } = confirm({ ...values, name: '<img src=x onerror=alert(1)>"\'&' })
    expect(text).toContain('<img src=x onerror=alert(1)>"\'&')
    expect(html).not.toContain('<img')
    expect(html).toContain('&lt;img')
  })

  it.each(['a\r\nBcc: victim@example.com', 'a\nb', 'a\u2028b', 'a\u0085b', 'a\0b', 'a\vb'])(
    'has no line break in the sentence, for each name: %j',
    (name) => {
      const { subject, text } = confirm({ ...values, name })
      expect(subject).toBe('Confirm your device')
      expect(text).toContain(`a device called "${name.replace(/[^ -~]+/g, ' ')}" asks`)
    },
  )

  it('does not let a name turn the direction of reading', () => {
    expect(confirm({ ...values, name: 'x\u202Egnp.exe' }).text).toContain('called "xgnp.exe" asks')
  })

  it('cuts a name that is a letter of its own', () => {
    const { text } = confirm({ ...values, name: '🐧'.repeat(5000) })
    expect(text).toContain(`called "${'🐧'.repeat(80)}…" asks`)
  })

  it('does not read Mustache in what strangers wrote', () => {
    expect(confirm({ ...values, name: '{{link}}' }).text).toContain('called "{{link}}" asks')
  })
})

describe("a user's folder", () => {
  it('replaces each text by the file of its name', () => {
    own('confirm.subject.txt', 'Neues Gerät: {{expires_in}}\n')
    own('confirm.txt', '{{! a comment }}Bitte: {{{link}}}')
    const { subject, text, html } = loadTemplates(folder).confirm(values)
    expect(subject).toBe('Neues Gerät: 24 hours')
    expect(text).toBe(`Bitte: ${values.link}`)
    expect(html).toBe(loadTemplates().confirm(values).html)
  })

  it('that is not there is a fault', () => {
    rmSync(folder, { recursive: true })
    expect(faultsOf()).toEqual([expect.stringContaining('SIDECAR_MAIL_TEMPLATES: expected a folder')])
    mkdirSync(folder)
  })

  it('may be empty', () => {
    expect(loadTemplates(folder).confirm(values)).toEqual(loadTemplates().confirm(values))
  })

  it.each([
    ['confirm.txt', '{{#name}} {{link}}', 'Unclosed section'],
    ['confirm.txt', 'Hello {{name}}', 'expected {{link}}'],
    ['confirm.html', '<p>{{name}}</p>', 'expected {{link}}'],
    ['confirm.html', '{{{name}}} {{link}}', 'expected {{…}}'],
    ['confirm.txt', '{{link}} {{nmae}}', 'got {{nmae}}'],
    ['confirm.txt', '{{#name}}{{lnik}}{{/name}} {{link}}', 'got {{lnik}}'],
    ['confirm.txt', '{{> link}} {{link}}', 'got {{> link}}'],
    ['confirm.subject.txt', '{{subject}}', 'got {{subject}}'],
    ['confirm.subject.txt', 'New: {{name}}', 'expected a subject without {{name}}'],
    ['invite.subject.txt', 'From {{owner}}', 'expected a subject without {{owner}}'],
  ])('with a fault is refused at the start, naming the file: %s %j', (name, text, fault) => {
    own(name, text)
    expect(faultsOf()).toEqual([expect.stringContaining(join(folder, name))])
    expect(faultsOf()[0]).toContain(fault)
  })

  it('has all its faults listed', () => {
    own('confirm.txt', 'no link')
    mkdirSync(join(folder, 'confirm.html'))
    expect(faultsOf()).toHaveLength(2)
  })
})
