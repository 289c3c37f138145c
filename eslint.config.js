import tseslint from 'typescript-eslint'
import { importX } from 'eslint-plugin-import-x'
import { createTypeScriptImportResolver } from 'eslint-import-resolver-typescript'

/**
 * Imports go down only: a folder may import from the layers below its own, never sideways into a feature above it.
 * The list is the architecture; docs/architecture.md draws it.
 */
const layers = [
  ['main.ts', 'cli'],
  ['sidecar.ts'],
  ['devices', 'embedded', 'http', 'deploy'],
  ['mail'],
  ['docstate'],
  ['feed'],
  ['couch'],
  ['core'],
]

const zones = layers.flatMap((layer, depth) =>
  layer.map((place) => ({
    target: `./sidecar/${place}`,
    from: layers
      .slice(0, depth)
      .flat()
      .map((above) => `./sidecar/${above}`),
    message: `${place} may not import from a layer above it`,
  })),
)

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] } } },
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createTypeScriptImportResolver()] },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off', // an async function is also a promise of not throwing at once
      'import-x/no-restricted-paths': ['error', { zones: zones.filter((zone) => zone.from.length > 0) }],
      'import-x/no-cycle': 'error',
      'no-restricted-globals': ['error', { name: 'fetch', message: 'Only sidecar/couch speaks HTTP to CouchDB.' }],
    },
  },
  { files: ['sidecar/couch/**', 'test/**', 'bench/**'], rules: { 'no-restricted-globals': 'off' } },
)
