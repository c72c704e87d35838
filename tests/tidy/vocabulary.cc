// The table of retired words, the only file that may contain them.
#include "tests/tidy/vocabulary.h"

namespace perfkit::tidy {
namespace {

using enum Retired::Scope;

constexpr Retired kRetired[] = {
    {kName, "EventBooks", "EventAccounting"},
    {kName, "StackBooks", "StackAccounting"},
    {kName, "CheckBooksClose", "CheckAccountingBalances"},
    {kCodeName, "Books", "Accounting"},
    {kCodeName, "books", "accounting"},
    {kPhrase, "the books", "the accounting"},
    {kPhrase, "books close", "the accounting balances"},

    {kName, "OpenLeaf", "OpenRingEvent"},
    {kCodeName, "Bank", "RingSet"},
    {kCodeName, "Carrier", "a tracking event"},
    {kName, "kCarrier", "kTracking"},
    {kName, "AnchorRequest", "RingOwnerRequest"},
    {kCodeName, "Roster", "InheritanceMap"},
    {kCodeName, "Ladder", "OverheadController"},
    {kCodeName, "Effort", "SamplingLevel"},
    {kName, "FullEffort", "FullLevel"},
    {kName, "StackTaker", "LiveStackHandler"},
    {kCodeName, "taker", "consumer or handler"},
    {kCodeName, "giver", "producer"},
    {kCodeName, "Player", "Key"},

    {kName, "NoFork", "ForkBlocker"},
    {kName, "ForkWatch", "ForkListener"},
    {kName, "LetGo", "OnForkedChild"},
    {kName, "let_go", "on_forked_child"},
    {kName, "gone_", "in_forked_child_, ended_"},
    {kPhrase, "let go", "release"},

    {kName, "narrowed", "user_only"},
    {kName, "may_narrow", "may_restrict_to_user"},
    {kName, "strayed", "cross_thread"},
    {kCodeName, "strays", "cross_thread"},
    {kName, "unsignalled", "coalesced"},
    {kName, "wished_*", "requested_ or optional_"},
    {kCodeName, "wish", "request"},

    {kName, "CodePlace", "CodeLocation"},
    {kName, "ResolvedPlace", "ResolvedLocation"},
    {kName, "FilePlace", "FileLocation"},
    {kName, "LeafPlace", "TaskCpu"},
    {kCodeName, "Place", "CodeLocation, TaskCpu, Storage or an index"},
    {kCodeName, "Places", "RegisterIndices"},

    {kName, "is_joined", "is_stitched"},
    {kName, "join_bytes", "stitch_bytes"},
    {kName, "joined_stacks", "stitched_stacks"},
    {kName, "JoinMemory", "StackStitcher"},
    {kCodeName, "Patience", "Backoff"},
    {kName, "OwnStacks", "ThreadStackBounds"},
    {kName, "UsualWalk", "FastPathWalk"},
    {kName, "UsualFrame", "FastPathFrame"},
    {kName, "FullRow", "CfiRow"},
    {kName, "RuleRows", "FdeRules"},
    {kName, "FrozenRows", "FrozenCfiRows"},
    {kName, "FullStep", "SlowStep"},
    {kName, "full_row", "cfi_row"},
    {kName, "row_rule", "rule_from_row"},
    {kName, "rule_rows", "fde_rules"},
    {kName, "frozen_rows", "frozen_cfi_rows"},
    {kName, "full_step", "slow_step"},

    {kCodeName, "Members", "RecordFields"},
    {kCodeName, "Meter", "MeasureBackend"},
    {kName, "MetersFor", "BackendsFor"},
    {kCodeName, "standing", "fixed_flags"},
    {kCodeName, "Core", "Impl"},
    {kName, "FrameCore", "FrameCounterImpl"},
    {kName, "SlotCore", "ThreadSlotsImpl"},

    {kName, "kMost*", "kMax"},
    {kName, "kLeast*", "kMin"},
    {kName, "most_*", "max_"},
    {kName, "least_*", "min_"},

    {kPhrase, "behind", "after; of; for"},
    {kPhrase, "every so many", "every N"},
    {kPhrase, "too dear", "too expensive"},
    {kPhrase, "at leisure", "later"},
    {kPhrase, "him", "it: a thread is no person"},
    {kPhrase, "his", "its: a thread is no person"},
    {kPhrase, "nobody", "no thread, no process, no reader; an ordinary user"},
    {kPhrase, "somebody", "another thread, process, program or user"},
    {kPhrase, "anybody", "any thread, process, program or user"},
    {kPhrase, "everybody", "each thread, process, program or user"},
    {kPhrase, "whoever", "the thread, process, program or user that"},
};

}  // namespace

std::span<const Retired> RetiredWords() { return kRetired; }

}  // namespace perfkit::tidy
