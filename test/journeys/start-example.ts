import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { anonKey } from "../realtime/service.ts";

export const PASSWORD = "Tangerine-Boat-7";

export type RunningExample = { readonly address: string; stop(): void };

/** Registers `ada@example.org` and so on at the service, and starts the example's server for it. */
export async function startExample(
  file: string,
  serviceUrl: string,
  names: readonly string[],
): Promise<RunningExample> {
  for (const name of names) {
    await fetch(`${serviceUrl}/auth/register`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name, email: `${name.toLowerCase()}@example.org`, password: PASSWORD }),
    });
  }
  const program = spawn(process.execPath, [file], {
    env: { SERVICE_URL: serviceUrl, ANON_KEY: anonKey, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [address] = await once(createInterface({ input: program.stdout! }), "line");
  return { address: String(address), stop: () => program.kill() };
}
