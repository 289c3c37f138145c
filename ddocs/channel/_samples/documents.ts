/** Documents of a channel. */
export default [
  { _id: 'description', type: 'description', name: 'photos', owner: 'owner@example.com' },
  { _id: 'note', type: 'note', text: 'of the app' },
]
