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

  it('the mail names the device, owner, link and expiry, and says what to do about an unknown request', () => {
    const { subject, text, html } = confirm(values)
    expect(subject).toBe('Confirm your device')
    for (const part of ['phone', 'owner@example.com', '24 hours', 'If it was not you']) {
      expect(text).toContain(part)
      expect(html).toContain(part)
    }
    expect(text).toContain(`\n${values.link}\n`)
    expect(html.replaceAll('&#x2F;', '/')).toContain(`href="${values.link}"`)
  })

  it('the mail states what a confirmation allows, and warns against codes from other people', () => {
    const { text, html } = confirm(values)
    for (const part of ['read and change all that your devices share', 'no code that another person has told'])
      for (const body of [text, html]) expect(body.replace(/\s+/g, ' ')).toContain(part)
  })

  it('the mail keeps text unchanged and escapes HTML', () => {
    const { text, html } = confirm({ ...values, name: '<img src=x onerror=alert(1)>"\'&' })
    expect(text).toContain('<img src=x onerror=alert(1)>"\'&')
    expect(html).not.toContain('<img')
    expect(html).toContain('&lt;img')
  })

  it.each(['a\r\nBcc: victim@example.com', 'a\nb', 'a\u2028b', 'a\u0085b', 'a\0b', 'a\vb'])(
    'a device name puts no line break into the sentence: %j',
    (name) => {
      const { subject, text } = confirm({ ...values, name })
      expect(subject).toBe('Confirm your device')
      expect(text).toContain(`a device called "${name.replace(/[^ -~]+/g, ' ')}" asks`)
    },
  )

  it('a device name cannot change the direction of reading', () => {
    expect(confirm({ ...values, name: 'x\u202Egnp.exe' }).text).toContain('called "xgnp.exe" asks')
  })

  it('a very long device name is shortened', () => {
    const { text } = confirm({ ...values, name: '🐧'.repeat(5000) })
    expect(text).toContain(`called "${'🐧'.repeat(80)}…" asks`)
  })

  it('a device name is not read as a Mustache template', () => {
    expect(confirm({ ...values, name: '{{link}}' }).text).toContain('called "{{link}}" asks')
  })
})

describe("a user's folder of templates", () => {
  it('a file replaces the built-in text of the same name', () => {
    own('confirm.subject.txt', 'Neues Gerät: {{expires_in}}\n')
    own('confirm.txt', '{{! a comment }}Bitte: {{{link}}}')
    const { subject, text, html } = loadTemplates(folder).confirm(values)
    expect(subject).toBe('Neues Gerät: 24 hours')
    expect(text).toBe(`Bitte: ${values.link}`)
    expect(html).toBe(loadTemplates().confirm(values).html)
  })

  it('a missing folder is a fault', () => {
    rmSync(folder, { recursive: true })
    expect(faultsOf()).toEqual([expect.stringContaining('SIDECAR_MAIL_TEMPLATES: expected a folder')])
    mkdirSync(folder)
  })

  it('an empty folder is allowed', () => {
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
  ])('a template with a fault is refused at the start, with the file name: %s %j', (name, text, fault) => {
    own(name, text)
    expect(faultsOf()).toEqual([expect.stringContaining(join(folder, name))])
    expect(faultsOf()[0]).toContain(fault)
  })

  it('all faults of a folder are listed', () => {
    own('confirm.txt', 'no link')
    mkdirSync(join(folder, 'confirm.html'))
    expect(faultsOf()).toHaveLength(2)
  })
})
