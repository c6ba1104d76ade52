import type { GatewayRequest } from "../../http.ts";
import { publicPath } from "../../public-address.ts";
import { type Agreed, agreeOn } from "../parse/accept.ts";
import type { Address } from "../parse/address.ts";
import { chooseVersion } from "./choose.ts";
import { type Notice, noticeOf } from "./notice.ts";
import type { Version, Versions } from "./served.ts";

type Deployment = { readonly versions: Versions; readonly publicUrl: string | null };
type Settled = { readonly agreed: Agreed; readonly version: Version; readonly notice: Notice | null };

/** In which version and which type a request is answered; where that version goes away, the answer says so. */
export async function settleVersion(
  request: GatewayRequest,
  address: Address,
  parameters: URLSearchParams,
  { versions, publicUrl }: Deployment,
): Promise<Settled> {
  const agreed = agreeOn(request.headers.accept);
  const base = publicPath(publicUrl);
  const said = { headers: request.headers, parameters, address, base, mediaType: agreed.version };
  const version = chooseVersion(said, await versions());
  const notice = noticeOf(version);
  if (notice) request.tell(notice.headers(address.canonical, base));
  return { agreed, version, notice };
}
