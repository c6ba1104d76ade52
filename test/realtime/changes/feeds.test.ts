import { expect, test } from "vitest";
import { ChangeFeeds } from "../../../realtime/changes/feeds.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { openRealtimeFixture } from "../service.ts";
import { Listener, StreamByHand, servicesWith } from "./stream-by-hand.ts";

const fixture = useFixture(openRealtimeFixture);

test("a client that resumes is notified when the stream is refused during the replay", async () => {
  const stream = new StreamByHand();
  const services = await servicesWith(stream, fixture);
  const feeds = new ChangeFeeds(services, { onMessage: () => {}, onStart: () => {} });
  const listener = new Listener();
  feeds.resume(listener);
  await until(() => stream.replaying.length === 1);
  stream.refuse("there is no publication");
  for (const place of stream.replaying) place();
  await until(() => listener.lost !== null);
  expect(listener.lost).toBe("there is no publication");
  feeds.close();
  await services.catalog.close();
});
