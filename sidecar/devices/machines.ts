import { controlMachines, type ControlMachines } from '../../ddocs/machines.ts'

/** The machines of the control database, with the time that the settings give to a link. */
export function controlMachinesFor({ confirmExpiryMs }: { readonly confirmExpiryMs: number }): ControlMachines {
  const { device } = controlMachines
  const confirming = { ...device.confirming, timeout: { ...device.confirming.timeout, afterMs: confirmExpiryMs } }
  return { ...controlMachines, device: { ...device, confirming } }
}
