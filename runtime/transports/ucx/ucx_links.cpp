#include "runtime/transports/ucx/ucx_links.h"

#include <fmt/format.h>

#include <algorithm>

namespace cinch::rt {
namespace {

// Tokens of notices, and of parts that arrive, have these bits; those of messages that are sent are
// their numbers.
constexpr std::uint64_t kNoticeToken = std::uint64_t{1} << 63;
constexpr std::uint64_t kLandingToken = std::uint64_t{1} << 62;
constexpr std::size_t kMostNoticeBytes = 512;
// Over a network a message is sent in parts that fit UCX's buffers (TCP_TX_SEG_SIZE), so that they
// are copied only once, from such a buffer to their place.
constexpr std::uint64_t kPartBytes = 64 << 10;

std::span<const std::uint8_t> bytes_of_text(std::span<const char> text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// The index of one of `all` that is free; makes one if none is.
template <typename Each>
std::uint32_t take_free(std::vector<std::uint32_t>& free, std::deque<Each>& all) {
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(all.size()));
    all.emplace_back();
  }
  const std::uint32_t taken = free.back();
  free.pop_back();
  return taken;
}

Error lost(std::uint32_t peer, std::string_view why, std::int32_t error = 0) {
  return {ErrorKind::Cancelled, fmt::format("the connection to rank {} was lost: {}", peer, why),
          error};
}

}  // namespace

UcxLinks::UcxLinks(const cinch_ucx_calls& calls, const UcxLinkOptions& options)
    : calls_(calls),
      rank_(options.rank),
      hashes_bodies_(!options.is_one_machine),
      most_part_bytes_(options.is_one_machine ? ~std::uint64_t{0} : kPartBytes),
      peers_(options.world) {}

Result<std::unique_ptr<UcxLinks>> UcxLinks::open(const cinch_ucx_calls& calls,
                                                 const UcxLinkOptions& options) {
  std::unique_ptr<UcxLinks> links(new UcxLinks(calls, options));
  cinch_ucx_events events{};
  events.context = links.get();
  events.arrived = [](void* context, cinch_ucx_arrival* arrival) {
    return static_cast<UcxLinks*>(context)->arrive(*arrival);
  };
  events.ended = [](void* context, std::uint64_t token, std::int32_t error) {
    static_cast<UcxLinks*>(context)->end(token, error);
  };
  events.lost = [](void* context, std::uint32_t peer, std::int32_t error) {
    static_cast<UcxLinks*>(context)->lose(peer, error);
  };
  cinch_ucx_options given{};
  given.transports = options.transports.c_str();
  given.devices = options.devices.empty() ? nullptr : options.devices.c_str();
  given.num_peers = options.world;
  given.sends_at_once = options.is_one_machine ? 0 : 1;
  const std::int32_t error = calls.open(&given, &events, &links->worker_);
  if (error != 0) return fail(ErrorKind::Device, "UCX: " + links->ucx_text(error), error);
  return links;
}

UcxLinks::~UcxLinks() {
  if (worker_ != nullptr) calls_.close(worker_);
}

std::string UcxLinks::ucx_text(std::int32_t error) const {
  std::array<char, 512> text{};
  calls_.error_text(error, text.data(), text.size());
  return text.data();
}

Result<std::vector<std::uint8_t>> UcxLinks::address() const {
  const void* bytes = nullptr;
  std::size_t size = 0;
  const std::int32_t error = calls_.address(worker_, &bytes, &size);
  if (error != 0) return fail(ErrorKind::Device, "UCX: " + ucx_text(error), error);
  const auto* const begin = static_cast<const std::uint8_t*>(bytes);
  return std::vector<std::uint8_t>(begin, begin + size);
}

Status UcxLinks::connect(const std::vector<std::vector<std::uint8_t>>& addresses,
                         const Digest& job_key) {
  // Before the first hello: who has heard it may rely on this.
  presence_ = RankPresence::open(job_key, rank_, static_cast<std::uint32_t>(peers_.size()));
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    keys_from_.push_back(direction_key(job_key, peer, rank_));
    peers_[peer].key_to = direction_key(job_key, rank_, peer);
  }
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank_) continue;
    const std::int32_t error = calls_.connect(worker_, peer, addresses[peer].data());
    if (error != 0) {
      return fail(ErrorKind::Device,
                  fmt::format("UCX does not reach rank {}: {}", peer, ucx_text(error)), error);
    }
  }
  is_connected_ = true;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer != rank_) tell(peer, MessageKind::Hello, {});
  }
  return Ok{};
}

Result<bool> UcxLinks::are_settled() {
  const std::int32_t settled = calls_.settle(worker_);
  if (settled < 0) return fail(ErrorKind::Device, "UCX: " + ucx_text(settled), settled);
  return settled == 1;
}

void UcxLinks::stop_listening() {
  if (presence_ != nullptr) presence_->forget_name();
  calls_.stop_listening(worker_);
}

std::vector<std::uint32_t> UcxLinks::silent_ranks() const {
  std::vector<std::uint32_t> silent;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer != rank_ && !peers_[peer].has_said_hello) silent.push_back(peer);
  }
  return silent;
}

MessageHeader UcxLinks::header_to(std::uint32_t to, MessageHeader header,
                                  std::span<const std::uint8_t> body) {
  header.from = rank_;
  header.number = peers_[to].num_sent++;
  if (hashes_bodies_ || header.kind != MessageKind::Data) {
    header.body = body_hash(peers_[to].key_to, header.number, body);
  }
  header.hash = hash_of(peers_[to].key_to, header);
  return header;
}

std::uint64_t UcxLinks::send(std::uint32_t to, std::uint64_t tag,
                             std::span<const std::uint8_t> bytes) {
  const std::uint32_t number = take_free(free_messages_, messages_);
  Message& message = messages_[number];
  message = {Message::State::UnderWay, true, to, tag, {}, std::nullopt, bytes.size(), 0};
  MessageHeader part{.tag = tag, .all = bytes.size()};
  do {
    part.bytes = std::min(message.bytes_left, most_part_bytes_);
    message.bytes_left -= part.bytes;
    ++message.parts_under_way;
    const auto body = bytes.subspan(part.first, part.bytes);
    const MessageHeader header = header_to(to, part, body);
    calls_.send(worker_, to, &header, sizeof header, body.data(), body.size(), number);
    part.first += part.bytes;
  } while (message.bytes_left > 0);
  return number;
}

std::uint64_t UcxLinks::receive(std::uint32_t from, std::uint64_t tag,
                                std::span<std::uint8_t> room) {
  const std::uint32_t number = take_free(free_messages_, messages_);
  Message& message = messages_[number];
  message = {Message::State::UnderWay, false, from, tag, room, std::nullopt, room.size(), 0};
  Peer& peer = peers_[from];
  bool has_come = false;
  std::erase_if(peer.early, [&](const Early& early) {
    if (early.header.tag != tag) return false;
    if (may_take(message, early.header)) {
      calls_.take(worker_, early.number, room.data() + early.header.first,
                  land(number, early.header));
    } else {
      calls_.drop(worker_, early.number);
    }
    has_come = true;
    return true;
  });
  if (message.bytes_left > 0 || !has_come) peer.awaited.push_back(number);
  return number;
}

bool UcxLinks::may_take(Message& message, const MessageHeader& part) const {
  const std::uint64_t room = message.room.size();
  const bool fits = part.all == room && part.bytes <= message.bytes_left && part.first <= room &&
                    part.bytes <= room - part.first;
  if (fits) {
    message.bytes_left -= part.bytes;
    ++message.parts_under_way;
    return true;
  }
  message.state = Message::State::Failed;
  message.error =
      Error{ErrorKind::Internal, fmt::format("rank {} sends {} bytes where rank {} expects {}",
                                             message.peer, part.all, rank_, room)};
  return false;
}

std::int32_t UcxLinks::arrive(cinch_ucx_arrival& arrival) {
  const std::span<const std::uint8_t> bytes(static_cast<const std::uint8_t*>(arrival.header),
                                            arrival.header_bytes);
  const auto header = read_header(bytes, keys_from_);
  const bool is_of_job = header && header->from != rank_ && header->bytes == arrival.bytes &&
                         peers_[header->from].seen.add(header->number);
  if (!is_of_job) return CINCH_UCX_DROP;
  return header->kind == MessageKind::Data ? arrive_data(*header, arrival)
                                           : arrive_notice(*header, arrival);
}

std::int32_t UcxLinks::arrive_data(const MessageHeader& header, cinch_ucx_arrival& arrival) {
  Peer& peer = peers_[header.from];
  const auto awaited = std::ranges::find_if(
      peer.awaited, [&](std::uint32_t number) { return messages_[number].tag == header.tag; });
  if (awaited == peer.awaited.end()) {
    peer.early.push_back({header, arrival.number});
    return CINCH_UCX_KEEP;
  }
  const std::uint32_t number = *awaited;
  Message& message = messages_[number];
  const bool fits = may_take(message, header);
  if (!fits || message.bytes_left == 0) {
    *awaited = peer.awaited.back();
    peer.awaited.pop_back();
  }
  if (!fits) return CINCH_UCX_DROP;
  arrival.room = message.room.data() + header.first;
  arrival.token = land(number, header);
  return CINCH_UCX_TAKE;
}

std::uint64_t UcxLinks::land(std::uint32_t message, const MessageHeader& part) {
  const std::uint32_t taken = take_free(free_landings_, landings_);
  landings_[taken] = {message, part};
  return kLandingToken | taken;
}

void UcxLinks::end_landing(std::uint32_t index, std::int32_t error) {
  const auto [number, part] = landings_[index];
  free_landings_.push_back(index);
  Message& message = messages_[number];
  if (error == 0 && part.body != 0 && message.state == Message::State::UnderWay) {
    const auto body = message.room.subspan(part.first, part.bytes);
    if (part.body != body_hash(keys_from_[part.from], part.number, body)) {
      message.state = Message::State::Failed;
      message.error = Error{ErrorKind::CorruptPayload,
                            fmt::format("what rank {} sends was altered on its way", part.from)};
    }
  }
  end_message(message, error);
}

std::uint32_t UcxLinks::take_free_notice() {
  const auto found =
      std::ranges::find_if(notices_, [](const Notice& each) { return !each.is_used; });
  const auto index = static_cast<std::uint32_t>(found - notices_.begin());
  if (found == notices_.end()) notices_.emplace_back();
  notices_[index].is_used = true;
  return index;
}

std::int32_t UcxLinks::arrive_notice(const MessageHeader& header, cinch_ucx_arrival& arrival) {
  if (arrival.bytes > kMostNoticeBytes) return CINCH_UCX_DROP;
  const std::uint32_t index = take_free_notice();
  Notice& notice = notices_[index];
  notice.is_sent = false;
  notice.header = header;
  notice.text.resize(arrival.bytes);
  arrival.room = notice.text.data();
  arrival.token = kNoticeToken | index;
  return CINCH_UCX_TAKE;
}

void UcxLinks::tell(std::uint32_t to, MessageKind kind, std::string_view text) {
  if (peers_[to].gone && kind != MessageKind::Heard) return;
  const std::uint32_t index = take_free_notice();
  Notice& notice = notices_[index];
  text = text.substr(0, kMostNoticeBytes);
  notice.is_sent = true;
  notice.text.assign(text.begin(), text.end());
  MessageHeader header{.kind = kind};
  header.bytes = header.all = text.size();
  notice.header = header_to(to, header, bytes_of_text(notice.text));
  calls_.send(worker_, to, &notice.header, sizeof notice.header, notice.text.data(),
              notice.text.size(), kNoticeToken | index);
}

void UcxLinks::end(std::uint64_t token, std::int32_t error) {
  if ((token & kLandingToken) != 0) {
    return end_landing(static_cast<std::uint32_t>(token & ~kLandingToken), error);
  }
  if ((token & kNoticeToken) == 0) return end_message(messages_[token], error);
  Notice& notice = notices_[token & ~kNoticeToken];
  if (!notice.is_sent && error == 0) hear(notice);
  notice.is_used = false;
}

void UcxLinks::end_message(Message& message, std::int32_t error) const {
  --message.parts_under_way;
  if (error == 0) {
    const bool is_over = message.bytes_left == 0 && message.parts_under_way == 0;
    if (is_over && message.state == Message::State::UnderWay) message.state = Message::State::Over;
    return;
  }
  message.state = Message::State::Failed;
  message.error = lost(message.peer, ucx_text(error), error);
}

void UcxLinks::hear(const Notice& notice) {
  const std::uint32_t from = notice.header.from;
  const std::uint64_t hash =
      body_hash(keys_from_[from], notice.header.number, bytes_of_text(notice.text));
  if (notice.header.body != hash) return;
  Peer& peer = peers_[from];
  const std::string_view text(notice.text.data(), notice.text.size());
  switch (notice.header.kind) {
    case MessageKind::Hello:
      peer.has_said_hello = true;
      return;
    case MessageKind::Heard:
      peer.has_heard = true;
      return;
    case MessageKind::GaveUp:
      peer.gone = Error{ErrorKind::Cancelled, gave_up(from, text)};
      break;
    case MessageKind::Left:
      peer.gone = Error{ErrorKind::Cancelled, fmt::format("rank {} has left", from)};
      break;
    case MessageKind::Data:
      return;
  }
  unanswered_.push_back(from);
}

void UcxLinks::lose(std::uint32_t peer, std::int32_t error) {
  if (!peers_[peer].gone) peers_[peer].gone = lost(peer, ucx_text(error), error);
}

Result<bool> UcxLinks::is_over(std::uint64_t number) {
  Message& message = messages_[number];
  if (message.state == Message::State::Over) {
    message.state = Message::State::Free;
    free_messages_.push_back(static_cast<std::uint32_t>(number));
    return true;
  }
  const auto& gone = peers_[message.peer].gone;
  if (message.state == Message::State::Failed && message.error->kind == ErrorKind::Internal) {
    return tl::unexpected<Error>(*message.error);
  }
  if (gone) return tl::unexpected<Error>(*gone);
  if (message.state == Message::State::Failed) return tl::unexpected<Error>(*message.error);
  return false;
}

void UcxLinks::watch() {
  if (presence_ == nullptr) return;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) (void)presence_->has_ended(peer);
  next_look_ = {};
}

// What a rank has sent before its end arrives first: nothing moves any more when this is called.
void UcxLinks::look_for_ended() {
  constexpr std::chrono::milliseconds kBetweenLooks{250};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank_ || peers_[peer].gone || !presence_->has_ended(peer)) continue;
    if (calls_.progress(worker_) != 0) {
      next_look_ = now;
      return;
    }
    peers_[peer].gone = lost(peer, "its process has ended");
  }
}

bool UcxLinks::progress() {
  const bool has_moved = calls_.progress(worker_) != 0;
  // Must not be called from within UCX, which does not accept calls then.
  while (!unanswered_.empty()) {
    const std::uint32_t to = unanswered_.back();
    unanswered_.pop_back();
    tell(to, MessageKind::Heard, {});
  }
  if (!has_moved) look_for_ended();
  return has_moved;
}

void UcxLinks::wait(std::chrono::microseconds most) {
  calls_.wait(worker_, static_cast<std::uint64_t>(most.count()));
}

void UcxLinks::wake() {
  calls_.wake(worker_);
}

void UcxLinks::tell_all(MessageKind kind, std::string_view text,
                        std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kNap{1000};
  if (!is_connected_) return;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer != rank_) tell(peer, kind, text);
  }
  const auto has_heard = [&](const Peer& peer) {
    return &peer == &peers_[rank_] || peer.gone || peer.has_heard;
  };
  const Clock::time_point end = Clock::now() + patience;
  // Answers to others' notices may also be under way.
  const auto is_sent = [](const Notice& each) { return !each.is_used || !each.is_sent; };
  while (Clock::now() < end &&
         !(std::ranges::all_of(peers_, has_heard) && std::ranges::all_of(notices_, is_sent))) {
    if (!progress()) wait(kNap);
  }
}

void UcxLinks::disconnect() {
  for (std::uint32_t peer = 0; peer < peers_.size() && is_connected_; ++peer) {
    if (peer != rank_) calls_.disconnect(worker_, peer);
  }
  is_connected_ = false;
}

}  // namespace cinch::rt
