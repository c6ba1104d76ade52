import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import express from "express";
import type { Config } from "../engine/config/config.ts";
import type { Connection } from "./http.ts";

/** Where a request came from, as far as the proxies in front are to be believed. */
export type ReadConnection = (request: IncomingMessage) => Connection;

type Trust = (address: string, hop: number) => boolean;

/** TRUST_PROXY as Express reads it, for requests that Express never sees, too. */
export function makeReadConnection({ trustProxy }: Pick<Config, "trustProxy">): ReadConnection {
  if (trustProxy === null || trustProxy === false) return directConnection;
  const trust: Trust = express().set("trust proxy", trustProxy).get("trust proxy fn");
  return (request) => {
    const direct = directConnection(request);
    if (direct.address === null) return direct;
    const { "x-forwarded-for": chain, "x-forwarded-proto": scheme } = request.headers;
    const isProxy = trust(direct.address, 0);
    const said = isProxy && typeof scheme === "string" ? scheme.split(",", 1)[0]!.trim() : null;
    return {
      address: farthestTrusted([direct.address, ...hops(chain)], trust),
      isSecure: said === null ? direct.isSecure : said === "https",
    };
  };
}

function directConnection({ socket }: IncomingMessage): Connection {
  return { address: socket.remoteAddress ?? null, isSecure: (socket as Partial<TLSSocket>).encrypted === true };
}

/** Each proxy has written behind those before it whom it was asked by. */
function hops(chain: string | readonly string[] | undefined): string[] {
  return String(chain ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter((address) => address !== "")
    .reverse();
}

/** The first that no trusted proxy speaks for. */
function farthestTrusted(addresses: readonly string[], trust: Trust): string {
  const end = addresses.findIndex((address, hop) => !trust(address, hop));
  return end < 0 ? addresses.at(-1)! : addresses[end]!;
}
