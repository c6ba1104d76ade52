import type { FunctionComponent } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { type Children, html } from "../html.ts";
import { useSegments } from "../router.ts";
import { texts } from "../texts.ts";
import { pages } from "./pages.ts";

type LoadedPage = { readonly name: string; readonly Page: FunctionComponent | null; readonly error: Error | null };

/** The page of the address; its modules are loaded when it is first shown. */
export function CurrentPage() {
  const [name = pages[0]!.name] = useSegments();
  const [loaded, setLoaded] = useState<LoadedPage | null>(null);
  const page = pages.find((each) => each.name === name);
  useEffect(() => {
    if (!page) return undefined;
    document.title = `${page.title} · ${texts.frame.title}`;
    let isCurrent = true;
    page.load().then(
      (Page) => isCurrent && setLoaded({ name, Page, error: null }),
      (error: Error) => isCurrent && setLoaded({ name, Page: null, error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [page]);
  if (!page) return html`<${Empty}><h1>${texts.frame.notFound}</h1><//>`;
  if (loaded?.name !== name) return html`<${Loading} />`;
  if (loaded.error) return html`<${Notice} kind="error" title=${texts.frame.loadFailed} error=${loaded.error} />`;
  return html`<${PageBoundary} key=${name}><${loaded.Page} /><//>`;
}

/** Shows the error of a page that cannot be drawn, so that the navigation stays. */
function PageBoundary({ children }: { readonly children?: Children }) {
  const [error, reset] = useErrorBoundary();
  if (!error) return html`${children}`;
  return html`<${Notice} kind="error" title=${texts.frame.drawFailed} error=${error} onRetry=${reset} />`;
}
