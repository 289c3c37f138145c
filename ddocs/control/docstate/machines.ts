export { controlMachines as default } from '../../machines.ts'
