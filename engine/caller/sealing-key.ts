import { hkdfSync } from "node:crypto";
import type { TokenKey } from "./keys.ts";

/** A key of 32 bytes that every gateway of the deployment has, for that purpose alone. */
export function sealingKey({ key }: TokenKey, purpose: string): Buffer {
  const material = key.type === "secret" ? key.export() : key.export({ type: "pkcs8", format: "der" });
  return Buffer.from(hkdfSync("sha256", material, "", purpose, 32));
}
