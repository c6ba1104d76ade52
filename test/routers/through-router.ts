import { isDeepStrictEqual } from "node:util";
import type { TestDatabase } from "../database.ts";
import { type Router, socketAddressOf } from "./router.ts";

type RunningRouter = Pick<Router, "port" | "settings">;
type DatabaseUrls = Pick<TestDatabase, "url" | "ownerUrl">;

/** Makes this the router of all services that this process, and processes that it starts, open on the cluster; returns how to undo that. */
export function useRouter({ port, settings }: RunningRouter, clusterUrl: string): () => void {
  const before = process.env.RUNNING_ROUTER;
  process.env.RUNNING_ROUTER = JSON.stringify({ port, settings, server: socketAddressOf(clusterUrl) });
  return () => {
    process.env.RUNNING_ROUTER = before ?? "";
  };
}

/** The settings for this database: through the run's router, if it has one and the database is of the run's cluster. */
export function settingsOf(urls: DatabaseUrls): NodeJS.ProcessEnv {
  const { RUNNING_ROUTER } = process.env;
  if (RUNNING_ROUTER) {
    const { server, ...router } = JSON.parse(RUNNING_ROUTER);
    if (isDeepStrictEqual(server, socketAddressOf(urls.url))) return settingsThrough(router, urls);
  }
  return { DATABASE_URL: urls.url, OWNER_DATABASE_URL: urls.ownerUrl };
}

/** Leads the owner's connections through the router too if ROUTER_OWNER is set, except those that require a session. */
export function settingsThrough({ port, settings }: RunningRouter, { url, ownerUrl }: DatabaseUrls): NodeJS.ProcessEnv {
  const owner = process.env.ROUTER_OWNER ? urlThrough(port, ownerUrl) : ownerUrl;
  return {
    DATABASE_URL: urlThrough(port, url),
    OWNER_DATABASE_URL: owner,
    DIRECT_DATABASE_URL: ownerUrl,
    ...settings,
  };
}

function urlThrough(port: number, url: string): string {
  const { username, pathname } = new URL(url.replace("@/", "@localhost/"));
  return `postgresql://${username}@127.0.0.1:${port}${pathname}`;
}
