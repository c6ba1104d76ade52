import type { Config } from "#config";
import { type CsrfProtection, type GatewayRequest, HttpError } from "#http";

type OriginDependencies = {
  readonly config: Pick<Config, "host" | "publicUrl">;
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
};

const LOOPBACK_NAME = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i;

/**
 * A page of another site that has let its name point to this machine (DNS rebinding) sends its own name as `Host`. A
 * service that only this machine can reach, or that knows its public address, accepts no other names.
 */
export function makeOriginCheck({ config: { host, publicUrl }, csrf }: OriginDependencies) {
  const publicName = publicUrl === null ? null : new URL(publicUrl).hostname;
  const knowsNames = publicName !== null || LOOPBACK_NAME.test(host) || host === "::1";
  const isKnownName = (name: string) => name === publicName || LOOPBACK_NAME.test(name);
  return ({ headers }: Pick<GatewayRequest, "headers">): void => {
    const name = URL.parse(`http://${headers.host ?? ""}`)?.hostname ?? "";
    if (knowsNames && !isKnownName(name)) {
      throw new HttpError(403, "PERMISSION_DENIED", "This service is not known by the name in the header Host.", {
        hint: "Set PUBLIC_URL to the address that clients use.",
      });
    }
    if (headers.origin === undefined || csrf.isAllowedOrigin(headers)) return;
    throw new HttpError(403, "PERMISSION_DENIED", "Pages of this origin may not use /mcp.", {
      hint: "Add the origin to CORS_ORIGINS.",
    });
  };
}
