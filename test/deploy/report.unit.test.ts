import { expect, test } from 'vitest'
import { compareDdocs } from '../../sidecar/deploy/compare.ts'
import { formatReport } from '../../sidecar/deploy/format-report.ts'

const before = {
  _id: '_design/app',
  _rev: '3-a',
  views: { old: { map: 'm' }, v: { map: '(function () {\n  a\n  b\n  c\n})()' } },
  list: [1, { x: 1, y: 2 }],
}
const after = {
  _id: '_design/app',
  list: [1, { y: 2, x: 1 }],
  views: { v: { map: '(function () {\n  a\n  B\n  c\n})()' } },
  limit: 1,
}

test('a comparison names each field that was added, changed or removed', () => {
  expect(compareDdocs(before, after)).toEqual([
    { kind: 'added', field: 'limit', after: 1 },
    { kind: 'removed', field: 'views.old', before: { map: 'm' } },
    { kind: 'changed', field: 'views.v.map', before: before.views.v.map, after: after.views.v.map },
  ])
  expect(compareDdocs(after, { ...after, _rev: '9-b' })).toEqual([])
})

test('a report shows the actions and the lines that differ', () => {
  const text = formatReport({
    url: 'http://127.0.0.1:5984',
    engine: 'quickjs',
    target: 'es2017',
    databases: [
      { database: 'control', result: 'there', ddocs: [{ kind: 'unchanged', id: '_design/docstate' }] },
      { database: 'new', result: 'would-create', ddocs: [] },
      {
        database: 'orders',
        result: 'created',
        ddocs: [
          { kind: 'created', id: '_design/x', changes: compareDdocs(undefined, after) },
          { kind: 'would-update', id: '_design/app', changes: compareDdocs(before, after) },
        ],
      },
    ],
  })
  expect(text.split('\n')).toEqual([
    'http://127.0.0.1:5984 (engine quickjs, es2017)',
    'control',
    '  _design/docstate unchanged',
    'new (would be created)',
    'orders (created)',
    '  _design/x created',
    '    + limit',
    '    + list',
    '    + views',
    '  _design/app would be updated',
    '    + limit',
    '      + 1',
    '    - views.old',
    '      - {"map":"m"}',
    '    ~ views.v.map',
    '      -   b',
    '      +   B',
    '3 databases: 2 changed, 1 unchanged, 0 failed',
  ])
})

test('a report shortens long values', () => {
  const long = Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\n')
  const changes = [{ kind: 'added', field: 'text', after: long } as const]
  const ddocs = [{ kind: 'updated', id: '_design/app', changes } as const]
  const text = formatReport({
    url: 'u',
    engine: 'e',
    target: 'es2017',
    databases: [{ database: 'd', result: 'there', ddocs }],
  })
  expect(text.split('\n').length).toBeLessThan(30)
  expect(text).toContain('80 more lines')
})
