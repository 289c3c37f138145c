export { userMachines as default } from '../../machines.ts'
