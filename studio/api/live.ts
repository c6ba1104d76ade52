import { RealtimeClient } from "./realtime.ts";
import { sessionState, viewedCaller, viewedToken } from "./session.ts";

let client: RealtimeClient | null = null;

/** The socket of the caller whose rows are shown; it follows renewed tokens and other callers. */
export function liveChanges(): RealtimeClient {
  client ??= openClient();
  return client;
}

function openClient(): RealtimeClient {
  const opened = new RealtimeClient({ address: location.origin.replace(/^http/, "ws"), token: viewedToken });
  let [caller, token] = [viewedCaller(sessionState.get()), viewedToken()];
  sessionState.subscribe(() => {
    const [nextCaller, nextToken] = [viewedCaller(sessionState.get()), viewedToken()];
    if (nextCaller !== caller) opened.changeCaller();
    else if (nextToken !== token) opened.renewToken();
    [caller, token] = [nextCaller, nextToken];
  });
  return opened;
}
